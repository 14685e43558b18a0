import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'vitest';
import type { PrintedMetrics } from './metrics.ts';
import type { Process } from './processes.ts';

/** What a process has to be started with, so that `metricsOf` can ask it and its children. */
export const PRINTS_METRICS = {
  NODE_OPTIONS: `--import=${pathToFileURL(join(import.meta.dirname, 'metrics.ts')).href}`,
};

type Metric = PrintedMetrics['metrics'][number];

/** What a process and its children measure at this moment. */
export async function metricsOf(process: Process | undefined): Promise<Metric[]> {
  const pid = process?.pid ?? 0;
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).split(' ').filter(Boolean).map(Number);
  const printed = async () => ((await process?.log()) ?? '').split('\n').filter((line) => line.startsWith('{"pid"'));
  const before = (await printed()).length;
  for (const each of [pid, ...children]) globalThis.process.kill(each, 'SIGUSR2');
  const now = async () => (await printed()).slice(before);
  await expect.poll(async () => (await now()).length, { timeout: 10_000 }).toBe(1 + children.length);
  return (await now()).flatMap((line) => (JSON.parse(line) as PrintedMetrics).metrics);
}
