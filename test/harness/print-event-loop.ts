/**
 * For benchmarks: loaded by `node --import`, it prints how long the event loop's iterations took, as a line of JSON, on
 * SIGUSR2, and begins anew.
 */
import { basename } from 'node:path';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';

/** One printed line. */
export interface PrintedEventLoop {
  readonly pid: number;
  /** The program's file and its first argument, such as `worker.ts 0`. */
  readonly program: string;
  /** In ms. */
  readonly p99: number;
  readonly max: number;
  /** 0 to 1. */
  readonly utilization: number;
}

const NS_PER_MS = 1e6;

const iterations = monitorEventLoopDelay({ samplePerIteration: true });
iterations.enable();
let before = performance.eventLoopUtilization();

process.on('SIGUSR2', () => {
  const now = performance.eventLoopUtilization();
  const printed: PrintedEventLoop = {
    pid: process.pid,
    program: `${basename(process.argv[1] ?? '')} ${process.argv[2] ?? ''}`.trim(),
    p99: iterations.percentile(99) / NS_PER_MS,
    max: iterations.max / NS_PER_MS,
    utilization: performance.eventLoopUtilization(now, before).utilization,
  };
  process.stdout.write(`${JSON.stringify(printed)}\n`);
  iterations.reset();
  before = now;
});
