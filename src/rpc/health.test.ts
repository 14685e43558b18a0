import { createClient, createRouterTransport } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { Health, HealthCheckResponse_ServingStatus as Status } from '../../proto/gen/grpc/health/v1/health_pb.ts';
import { healthService } from './health.ts';

const MOST = 3;

function watching(limits: { lastsMs: number }) {
  const service = healthService(new Map([['', async () => true]]), { most: MOST, everyMs: 20, ...limits });
  const health = createClient(
    Health,
    createRouterTransport((router) => router.service(Health, service)),
  );
  return (signal?: AbortSignal) => health.watch({}, signal ? { signal } : {})[Symbol.asyncIterator]();
}

test('so many clients may watch at a time, and one that leaves makes room', async () => {
  const watch = watching({ lastsMs: 60_000 });
  const leaving = new AbortController();
  const serving = { done: false, value: expect.objectContaining({ status: Status.SERVING }) };
  const leaver = watch(leaving.signal);
  expect(await leaver.next()).toEqual(serving);
  for (let n = 1; n < MOST; n++) expect(await watch().next()).toEqual(serving);
  await expect(watch().next()).rejects.toThrow('Too many clients watch; use Check.');
  const left = leaver.next();
  leaving.abort();
  await expect(left).rejects.toThrow();
  await expect
    .poll(() =>
      watch()
        .next()
        .then(
          ({ value }) => value?.status,
          () => undefined,
        ),
    )
    .toBe(Status.SERVING);
});

test('a watch ends after a while', async () => {
  const watch = watching({ lastsMs: 100 });
  const statuses = [];
  for await (const { status } of { [Symbol.asyncIterator]: () => watch() }) statuses.push(status);
  expect(statuses).toEqual([Status.SERVING]);
});
