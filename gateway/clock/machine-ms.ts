/**
 * A monotonic time in ms that is the same in all processes of a machine, unlike `performance.now()`: for measurements
 * that one process starts and another one reports.
 */
export function machineMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
