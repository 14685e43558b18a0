import { once } from 'node:events';
import { Code, ConnectError, createClient, type ServiceImpl } from '@connectrpc/connect';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { failure, readFailure } from '../common/contract/errors.ts';
import { freePort, LOOPBACK } from '../local/free-port.ts';
import { CodesService } from '../proto/gen/signpost/codes/v1/codes_pb.ts';
import { serveGrpc } from '../src/rpc/grpc-server.ts';
import { createGrpcTransport } from './grpc-transport.ts';

async function serve(implementation: Partial<ServiceImpl<typeof CodesService>>, port = 0): Promise<string> {
  const server = await serveGrpc({
    host: LOOPBACK,
    port,
    register: (services) => services.service(CodesService, implementation),
    gate: async () => {},
    interceptors: [],
    largeMessages: (_caller, _signal, work) => work(),
    logger: pino({ level: 'silent' }),
  });
  onTestFinished(() => server.stop(0));
  return `${LOOPBACK}:${server.port}`;
}

function client(addresses: readonly string[], timeoutMs = 5_000) {
  const transport = createGrpcTransport(addresses, timeoutMs);
  onTestFinished(() => transport.close());
  return createClient(CodesService, transport);
}

async function failureOf(call: Promise<unknown>): Promise<ConnectError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ConnectError)) throw new Error('the call did not fail as it should');
  return error;
}

describe('a typed client over grpc-js', () => {
  test('carries messages, request headers, response headers and trailers', async () => {
    const address = await serve({
      getCode({ id }, context) {
        context.responseHeader.set('x-said', context.requestHeader.get('x-say') ?? '');
        context.responseTrailer.set('x-last', 'word');
        return { code: { id, scanCount: 2n ** 53n, tags: ['ä'] } };
      },
    });
    let said: string | null = null;
    let last: string | null = null;
    const { code } = await client([address]).getCode(
      { id: 'qr_1' },
      {
        headers: { 'x-say': 'hello' },
        onHeader: (headers) => {
          said = headers.get('x-said');
        },
        onTrailer: (trailers) => {
          last = trailers.get('x-last');
        },
      },
    );
    expect(code).toMatchObject({ id: 'qr_1', scanCount: 2n ** 53n, tags: ['ä'] });
    expect([said, last]).toEqual(['hello', 'word']);
  });

  test('an error keeps its code, sentence, details and metadata', async () => {
    const address = await serve({
      getCode() {
        const error = failure('QR_LIMIT_REACHED', 'Genug für heute.', { limit: '2', used: '2' });
        error.metadata.set('ratelimit-limit', '50000');
        throw error;
      },
    });
    const error = await failureOf(client([address]).getCode({}));
    expect(error.code).toBe(Code.ResourceExhausted);
    expect(error.metadata.get('ratelimit-limit')).toBe('50000');
    expect(readFailure(error)).toEqual({
      reason: 'QR_LIMIT_REACHED',
      message: 'Genug für heute.',
      details: { limit: '2', used: '2' },
    });
  });

  test('a call to a core that does not respond fails at the deadline, and is cancelled there', async () => {
    const gone = Promise.withResolvers<void>();
    const address = await serve({
      async getCode(_request, { signal }) {
        await once(signal, 'abort');
        gone.resolve();
        return {};
      },
    });
    expect((await failureOf(client([address], 200).getCode({}))).code).toBe(Code.DeadlineExceeded);
    await gone.promise;
    expect((await failureOf(client([address]).getCode({}, { timeoutMs: 200 }))).code).toBe(Code.DeadlineExceeded);
  });

  test('an aborted call is cancelled on both sides', async () => {
    const running = Promise.withResolvers<void>();
    const gone = Promise.withResolvers<void>();
    const address = await serve({
      async getCode(_request, { signal }) {
        running.resolve();
        await once(signal, 'abort');
        gone.resolve();
        return {};
      },
    });
    const left = new AbortController();
    const call = failureOf(client([address]).getCode({}, { signal: left.signal }));
    await running.promise;
    left.abort();
    expect((await call).code).toBe(Code.Canceled);
    await gone.promise;
    expect((await failureOf(client([address]).getCode({}, { signal: left.signal }))).code).toBe(Code.Canceled);
  });

  test('a call fails at once while the core is unavailable, and succeeds once it is back', async () => {
    const port = await freePort();
    const calls = client([`${LOOPBACK}:${port}`], 60_000);
    expect((await failureOf(calls.getCode({}))).code).toBe(Code.Unavailable);
    await serve({ getCode: () => ({}) }, port);
    await expect.poll(() => calls.getCode({}), { timeout: 10_000 }).toBeTruthy();
  });

  test('several cores are used round-robin, and an unavailable one is skipped', async () => {
    const asked = { one: 0, other: 0 };
    const addresses = await Promise.all([
      serve({ getCode: () => ({ code: { paused: ++asked.one > 0 } }) }),
      serve({ getCode: () => ({ code: { paused: ++asked.other > 0 } }) }),
    ]);
    const calls = client([...addresses, `${LOOPBACK}:${await freePort()}`]);
    // The first call to each one detects its state.
    await Promise.allSettled([calls.getCode({}), calls.getCode({}), calls.getCode({})]);
    for (let call = 0; call < 20; call++) await calls.getCode({});
    expect(asked.one).toBeGreaterThanOrEqual(10);
    expect(asked.other).toBeGreaterThanOrEqual(10);
  });

  test('a change carries a commit deadline, and is repeated when a core rejects it with its clock', async () => {
    const clock = 5_000_000;
    const limits: (string | null)[] = [];
    const address = await serve({
      createCode(_request, { requestHeader }) {
        limits.push(requestHeader.get('signpost-commit-by'));
        if (limits.length !== 1 && limits.length !== 3) return {};
        const error = failure('TOO_LATE', 'Late.');
        error.metadata.set('signpost-clock', String(clock * limits.length));
        throw error;
      },
      getCode(_request, { requestHeader }) {
        limits.push(requestHeader.get('signpost-commit-by'));
        return {};
      },
    });
    const calls = client([address], 20_000);
    await calls.createCode({});
    await calls.createCode({});
    await calls.getCode({});
    // It knew nothing; then it did; then the clock had been set.
    expect(limits).toEqual(['0', expect.any(String), expect.any(String), expect.any(String), null]);
    for (const [index, coreClock] of [
      [1, clock],
      [2, clock],
      [3, 3 * clock],
    ] as const) {
      expect(Number(limits[index])).toBeGreaterThan(coreClock);
      // Until then the caller waits, whatever time has passed here meanwhile.
      expect(Number(limits[index])).toBeLessThan(coreClock + 20_000 + (index === 2 ? 10_000 : 0));
    }
  });

  test('a change that is rejected as late twice fails, and is not sent a third time', async () => {
    let calls = 0;
    const address = await serve({
      async createCode() {
        calls += 1;
        throw failure('TOO_LATE', 'Late.');
      },
    });
    expect(readFailure(await failureOf(client([address]).createCode({}))).reason).toBe('TOO_LATE');
    expect(calls).toBe(2);
  });
});
