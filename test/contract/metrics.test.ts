import { expect, test } from 'vitest';
import { metricsOf, PRINTS_METRICS } from '../harness/printed-metrics.ts';
import type { Process } from '../harness/processes.ts';
import { contract } from './client.ts';

const api = contract({ env: { ...PRINTS_METRICS, GATEWAY_WORKERS: '2' } });

/** Event-loop metrics of the process and its children; unreported ones are missing. */
async function eventLoopsOf(process: Process | undefined) {
  return (await metricsOf(process))
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
