import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import type { PrintedMetrics } from '../harness/metrics.ts';
import type { Process } from '../harness/processes.ts';
import { contract } from './client.ts';

const metrics = pathToFileURL(join(import.meta.dirname, '../harness/metrics.ts')).href;
const api = contract({ env: { NODE_OPTIONS: `--import=${metrics}`, GATEWAY_WORKERS: '2' } });

const EVENTUALLY = { timeout: 10_000, interval: 50 };

/** Event-loop metrics of the process and its children; unreported ones are missing. */
async function eventLoopsOf(process: Process | undefined) {
  const pid = process?.pid ?? 0;
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).split(' ').filter(Boolean).map(Number);
  for (const each of [pid, ...children]) globalThis.process.kill(each, 'SIGUSR2');
  let printed: PrintedMetrics[] = [];
  const collected = async () => {
    const lines = ((await process?.log()) ?? '').split('\n').filter((line) => line.startsWith('{"pid"'));
    printed = lines.map((line) => JSON.parse(line) as PrintedMetrics);
    return printed.length;
  };
  await expect.poll(collected, EVENTUALLY).toBe(1 + children.length);
  return printed
    .flatMap((each) => each.metrics)
    .filter(({ name }) => name.startsWith('nodejs.eventloop.'))
    .map(({ name, value, attributes }) => ({ name, attributes, sane: value >= 0 && value < 10 }));
}

function eventLoop(attributes: Record<string, string | number>) {
  return ['utilization', 'delay.p50', 'delay.p99', 'delay.max'].map((figure) => ({
    name: `nodejs.eventloop.${figure}`,
    attributes,
    sane: true,
  }));
}

test('a core reports its event-loop delay', async () => {
  expect(await eventLoopsOf(api.signpost.cores[0])).toEqual(eventLoop({}));
});

test('so do each worker of a gateway and its carrier', async () => {
  const reported = await eventLoopsOf(api.signpost.gateways[0]);
  expect(reported).toHaveLength(12);
  expect(reported).toEqual(
    expect.arrayContaining([
      ...eventLoop({ worker: 0 }),
      ...eventLoop({ worker: 1 }),
      ...eventLoop({ worker: 'carrier' }),
    ]),
  );
});
