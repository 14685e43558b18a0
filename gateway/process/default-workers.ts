/** Memory for each worker, in bytes. Source: docs/operating/installing.md, "Processes of a gateway". */
const BYTES_PER_WORKER = 256 * 1024 ** 2;

/**
 * The number of workers unless `GATEWAY_WORKERS` says it: one for each CPU, as far as they fit into the memory that the
 * process may take, at least one. `bytes`: as by `process.constrainedMemory()`, which without a limit is 0 or exceeds
 * the memory of any machine.
 */
export function defaultWorkers(cpus: number, bytes: number): number {
  if (bytes === 0) return cpus;
  return Math.min(cpus, Math.max(1, Math.floor(bytes / BYTES_PER_WORKER)));
}
