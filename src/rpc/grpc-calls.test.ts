import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createClient, createContextKey } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { fairQueue } from '../../common/runtime/fair-queue.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { serveGrpc } from './grpc-server.ts';

setFlagsFromString('--expose-gc');
// Otherwise V8 may learn here that such arrays live long.
setFlagsFromString('--no-allocation-site-pretenuring');
const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void;

const CALLS = 300;
/** 96 KB, while the client in this process keeps a third of that for a call. */
const NUMBERS = 12_000;
const heldKey = createContextKey<readonly number[]>([], { description: 'held' });

test('what an answered call refers to is collected with young objects', async () => {
  const server = await serveGrpc({
    host: '127.0.0.1',
    port: 0,
    register: (services) => services.service(CodesService, { getCode: () => ({}) }),
    gate: async ({ values }) => void values.set(heldKey, new Array<number>(NUMBERS).fill(0.5)),
    interceptors: [],
    largeMessages: fairQueue({ concurrency: 1, maxWaiting: 1, items: 'large messages' }),
    logger: pino({ level: 'silent' }),
  });
  onTestFinished(() => server.stop(1_000));
  const client = createClient(CodesService, createGrpcTransport({ baseUrl: `http://127.0.0.1:${server.port}` }));
  const makeCalls = async () => {
    for (let call = 0; call < CALLS; call++) await client.getCode({});
    // Streams are closed a moment after the answer.
    await sleep(50);
  };
  await makeCalls();
  collect();
  const before = process.memoryUsage().heapUsed;
  await makeCalls();
  for (let time = 0; time < 3; time++) collect({ type: 'minor' });
  const keptBytes = (process.memoryUsage().heapUsed - before) / CALLS;
  expect(keptBytes).toBeLessThan(NUMBERS * 8 * 0.6);
});
