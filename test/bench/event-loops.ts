import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { PrintedEventLoop } from '../harness/print-event-loop.ts';
import type { Platform } from './platform.ts';
import { childrenOf } from './process-tree.ts';

/** Environment variables that make processes print the iterations of their event loops on SIGUSR2. */
export const PRINT_EVENT_LOOPS = {
  NODE_OPTIONS: `--import=${pathToFileURL(join(import.meta.dirname, '../harness/print-event-loop.ts')).href}`,
};

/** Iterations of an event loop since they were last printed. */
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
    printedBy(logs.core, [pids.core]),
    printedBy(logs.worker, [pids.worker]),
    printedBy(logs.gateway, gatewayPids),
  ]);
  const cores = new Map([
    [pids.core, 'core, rpc'],
    [pids.worker, 'core, the rest'],
  ]);
  // The gateway's main process does no work.
  return printed
    .flat()
    .filter(({ pid }) => pid !== pids.gateway)
    .map(({ program, ...figures }) => ({
      ...figures,
      process: cores.get(figures.pid) ?? `gateway, ${program.replace('.ts', '')}`,
    }));
}

/** Makes processes that share a log print their event loops, and returns them. */
async function printedBy(log: string, pids: readonly number[]): Promise<PrintedEventLoop[]> {
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
