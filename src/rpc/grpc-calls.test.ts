import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Code, createClient, createContextKey } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { fairQueue } from '../../common/queues/fair-queue.ts';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../../proto/gen/grpc/health/v1/health_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { serveGrpc } from './grpc-server.ts';
import { healthService } from './health.ts';
import type { Gate, RegisterServices } from './server-options.ts';

setFlagsFromString('--expose-gc');
// Otherwise V8 may learn here that such arrays live long.
setFlagsFromString('--no-allocation-site-pretenuring');
const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void;

const CALLS = 300;
/** 96 KB, while the client in this process keeps a third of that for a call. */
const NUMBERS = 12_000;
const heldKey = createContextKey<readonly number[]>([], { description: 'held' });

/** A server with these services whose calls the gate has admitted. */
async function serveAdmitted(register: RegisterServices, gate: Gate = async () => undefined): Promise<string> {
  const server = await serveGrpc({
    host: '127.0.0.1',
    port: 0,
    register,
    gate,
    interceptors: [],
    largeMessages: fairQueue({ concurrency: 1, maxWaiting: 1, items: 'large messages' }),
    logger: pino({ level: 'silent' }),
  });
  onTestFinished(() => server.stop(1_000));
  return `http://127.0.0.1:${server.port}`;
}

test('a stream whose caller left before its first message ends', async () => {
  const check = Promise.withResolvers<boolean>();
  const checked = Promise.withResolvers<void>();
  const isServing = () => {
    checked.resolve();
    return check.promise;
  };
  const service = healthService(new Map([['', isServing]]), { most: 1, lastsMs: 60_000, everyMs: 20 });
  const left = Promise.withResolvers<void>();
  const watch: typeof service.watch = (request, context) => {
    context.signal.addEventListener('abort', () => left.resolve());
    return service.watch(request, context);
  };
  const baseUrl = await serveAdmitted((services) => services.service(Health, { ...service, watch }));
  const health = createClient(Health, createGrpcTransport({ baseUrl }));
  const leaving = new AbortController();
  const answered = health.watch({}, { signal: leaving.signal })[Symbol.asyncIterator]().next();
  await checked.promise;
  leaving.abort();
  await expect(answered).rejects.toMatchObject({ code: Code.Canceled });
  await left.promise;
  check.resolve(true);
  const first = () => health.watch({})[Symbol.asyncIterator]().next();
  await expect.poll(() => first().catch(() => undefined)).toMatchObject({ value: { status: Status.SERVING } });
});

test('what an answered call refers to is collected with young objects', async () => {
  const baseUrl = await serveAdmitted(
    (services) => services.service(CodesService, { getCode: () => ({}) }),
    async ({ values }) => void values.set(heldKey, new Array<number>(NUMBERS).fill(0.5)),
  );
  const client = createClient(CodesService, createGrpcTransport({ baseUrl }));
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
