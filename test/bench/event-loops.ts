import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { PrintedMetrics } from '../harness/metrics.ts';
import type { Platform } from './platform.ts';
import { childrenOf } from './process-tree.ts';

/** Environment variables that make processes print their metrics on SIGUSR2. */
export const PRINT_METRICS = {
  NODE_OPTIONS: `--import=${pathToFileURL(join(import.meta.dirname, '../harness/metrics.ts')).href}`,
};

/** Iterations of an event loop since its metrics were last printed. */
export interface EventLoop {
  readonly process: string;
  readonly pid: number;
  /** The duration of iterations, in ms. */
  readonly p99: number;
  readonly max: number;
  /** The share of time in which the event loop was active, 0 to 1. */
  readonly utilization: number;
}

/** The event loops of the cores, the gateway's workers and its carrier since the previous call. */
export async function eventLoops({ pids, logs }: Platform): Promise<EventLoop[]> {
  const gatewayPids = [pids.gateway, ...childrenOf(pids.gateway)];
  const printed = await Promise.all([
    printedMetrics(logs.core, [pids.core]),
    printedMetrics(logs.worker, [pids.worker]),
    printedMetrics(logs.gateway, gatewayPids),
  ]);
  const cores = new Map([
    [pids.core, 'core, rpc'],
    [pids.worker, 'core, the rest'],
  ]);
  return printed.flat().flatMap(({ pid, metrics }) => {
    const figure = (name: string) => metrics.find((metric) => metric.name === `nodejs.eventloop.${name}`);
    const max = figure('delay.max');
    if (!max) return [];
    const worker = max.attributes.worker;
    return {
      process: cores.get(pid) ?? (worker === 'carrier' ? 'gateway, carrier' : `gateway, worker ${worker}`),
      pid,
      p99: (figure('delay.p99')?.value ?? 0) * 1_000,
      max: max.value * 1_000,
      utilization: figure('utilization')?.value ?? 0,
    };
  });
}

/** Makes processes that share a log print their metrics, and returns them. */
async function printedMetrics(log: string, pids: readonly number[]): Promise<PrintedMetrics[]> {
  const file = await open(log);
  try {
    const { size } = await file.stat();
    for (const pid of pids) process.kill(pid, 'SIGUSR2');
    for (;;) {
      const text = await read(file, size);
      const lines = text.split('\n').slice(0, -1);
      const printed = lines.filter((line) => line.startsWith('{"pid"')).map((line) => JSON.parse(line));
      if (printed.length >= pids.length) return printed;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  } finally {
    await file.close();
  }
}

async function read(file: Awaited<ReturnType<typeof open>>, from: number): Promise<string> {
  const { size } = await file.stat();
  const bytes = Buffer.alloc(size - from);
  await file.read(bytes, 0, bytes.length, from);
  return bytes.toString();
}
