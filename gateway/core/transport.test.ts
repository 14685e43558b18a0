import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { constants, createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Code, ConnectError, type ServiceImpl } from '@connectrpc/connect';
import { Http2SessionManager } from '@connectrpc/connect-node';
import { pino } from 'pino';
import { describe, expect, onTestFinished, test } from 'vitest';
import { failure, readFailure } from '../../common/contract/errors.ts';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { serveGrpc } from '../../src/rpc/grpc-server.ts';
import type { ListeningServer } from '../../src/rpc/server-options.ts';
import { startDns } from '../../test/harness/dns.ts';
import { callUnary } from './call.ts';
import type { Resolve } from './connections.ts';
import { createGrpcClients } from './transport.ts';

type Implementation = Partial<ServiceImpl<typeof CodesService>>;

async function serve(implementation: Implementation, port = 0, host = LOOPBACK): Promise<string> {
  const server = await start(implementation, port, host);
  return `${host}:${server.port}`;
}

async function start(implementation: Implementation, port = 0, host = LOOPBACK): Promise<ListeningServer> {
  const server = await serveGrpc({
    host,
    port,
    register: (services) => services.service(CodesService, implementation),
    gate: async () => {},
    interceptors: [],
    largeMessages: (_caller, _signal, work) => work(() => undefined),
    logger: pino({ level: 'silent' }),
  });
  onTestFinished(() => server.stop(0));
  return server;
}

async function slowly(): Promise<object> {
  await sleep(10 * Math.random());
  return {};
}

function client(addresses: readonly string[], timeoutMs = 5_000, resolve?: Resolve) {
  const grpc = createGrpcClients({ addresses, timeoutMs, ca: undefined, resolve });
  onTestFinished(() => grpc.close());
  return grpc.client(CodesService);
}

async function failureOf(call: Promise<unknown>): Promise<ConnectError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ConnectError)) throw new Error('the call did not fail as it should');
  return error;
}

describe('the gateway’s gRPC clients', () => {
  test('carries messages, request headers and response headers', async () => {
    const address = await serve({
      getCode({ id }, context) {
        context.responseHeader.set('x-said', context.requestHeader.get('x-say') ?? '');
        return { code: { id, scanCount: 2n ** 53n, tags: ['ä'] } };
      },
    });
    let said: unknown;
    const { code } = await client([address]).getCode(
      { id: 'qr_1' },
      {
        headers: { 'x-say': 'hello' },
        onHeaders: (headers) => {
          said = headers['x-said'];
        },
      },
    );
    expect(code).toMatchObject({ id: 'qr_1', scanCount: 2n ** 53n, tags: ['ä'] });
    expect(said).toBe('hello');
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

  test('calls go on while others on their connection are aborted by the thousand', async () => {
    const [running, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const address = await serve({
      async getCode({ id }) {
        if (id !== 'long') await sleep(50);
        else {
          running.resolve();
          await end.promise;
        }
        return { code: { id } };
      },
    });
    const codes = client([address], 30_000);
    const long = codes.getCode({ id: 'long' });
    await running.promise;
    for (let round = 0; round < 20; round++) {
      const left = new AbortController();
      const calls = Array.from({ length: 100 }, () => failureOf(codes.getCode({}, { signal: left.signal })));
      await sleep(10);
      left.abort();
      await Promise.all(calls);
    }
    end.resolve();
    expect((await long).code?.id).toBe('long');
  });

  test('a call that is aborted while it is being sent is cancelled', async () => {
    const address = await serve({ getCode: () => new Promise(() => {}) });
    const session = new Http2SessionManager(`http://${address}`);
    onTestFinished(() => void session.abort());
    const left = new AbortController();
    const aborting = {
      async request(...request: Parameters<Http2SessionManager['request']>) {
        const stream = await session.request(...request);
        left.abort();
        return stream;
      },
    } as Http2SessionManager;
    const call = callUnary(aborting, {
      path: '/signpost.codes.v1.CodesService/GetCode',
      headers: {},
      message: [],
      failsAt: performance.now() + 5_000,
      signal: left.signal,
    });
    expect((await failureOf(call)).code).toBe(Code.Canceled);
  });

  test('a call fails at once while the core is unavailable, and succeeds once it is back', async () => {
    const port = await freePort();
    const calls = client([`${LOOPBACK}:${port}`], 60_000);
    expect((await failureOf(calls.getCode({}))).code).toBe(Code.Unavailable);
    await serve({ getCode: () => ({}) }, port);
    await expect.poll(() => calls.getCode({})).toBeTruthy();
  });

  test('a call that reaches no core says why', async () => {
    const refused = (await failureOf(client([`${LOOPBACK}:${await freePort()}`]).getCode({}))).cause;
    expect((refused as AggregateError).errors.map(String)).toEqual([expect.stringContaining('ECONNREFUSED')]);
    const unknown = client(['core.invalid:50051'], 5_000, async () => {
      throw new Error('ENOTFOUND');
    });
    expect((await failureOf(unknown.getCode({}))).cause).toEqual(new Error('ENOTFOUND'));
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

  test('a host name is resolved again within a second, and calls follow its addresses', async () => {
    const calls = { former: 0, current: 0 };
    const port = await freePort();
    await serve({ getCode: () => ({ code: { paused: ++calls.former > 0 } }) }, port, '127.0.0.2');
    await serve({ getCode: () => ({ code: { paused: ++calls.current > 0 } }) }, port, '127.0.0.3');
    const dns = await startDns();
    dns.set('core.test', 'A', '127.0.0.2');
    const resolver = new Resolver();
    resolver.setServers([dns.address]);
    const core = client([`core.test:${port}`], 5_000, (hostname) => resolver.resolve4(hostname));
    await core.getCode({});
    await core.getCode({});
    expect(calls).toEqual({ former: 2, current: 0 });
    dns.set('core.test', 'A', '127.0.0.3');
    await expect.poll(() => core.getCode({}).then(() => calls.current), { timeout: 5_000 }).toBeGreaterThan(0);
    const { former } = calls;
    for (let call = 0; call < 10; call++) await core.getCode({});
    expect(calls.former).toBe(former);
    // The last known addresses are used while the name can't be resolved.
    dns.mode = 'broken';
    await sleep(1_100);
    await core.getCode({});
    await core.getCode({});
  });

  test.each([
    [
      'two names',
      [
        ['one.test', 0],
        ['other.test', 0],
      ],
    ],
    [
      'one name with two ports',
      [
        ['one.test', 0],
        ['one.test', 1],
      ],
    ],
  ] as const)('each core gets one connection, also by %s and while names can’t be resolved', async (_, names) => {
    let opened = 0;
    const servers = await Promise.all(
      [0, 1].map(async () => {
        const server = createServer().on('session', () => opened++);
        onTestFinished(() => void server.close());
        server.on('stream', (stream: ServerHttp2Stream) => {
          stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
          stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
          stream.end(Buffer.alloc(5));
        });
        await once(server.listen(0, LOOPBACK), 'listening');
        return server;
      }),
    );
    const ports = servers.map((server) => (server.address() as AddressInfo).port);
    let resolutions = 0;
    const core = client(
      names.map(([name, index]) => `${name}:${ports[index]}`),
      5_000,
      async () => {
        if (++resolutions > 2 * names.length) throw new Error('the name can’t be resolved');
        return [LOOPBACK, LOOPBACK];
      },
    );
    await expect.poll(() => core.getCode({}).then(() => resolutions)).toBeGreaterThan(4 * names.length);
    for (let call = 0; call < 10; call++) await core.getCode({});
    expect(opened).toBe(new Set(names.map(([, index]) => index)).size);
  });

  test('no call fails while one core after the other is replaced', async () => {
    const ports = [await freePort(), await freePort()];
    const servers = await Promise.all(ports.map((port) => start({ getCode: slowly }, port)));
    const core = client(ports.map((port) => `${LOOPBACK}:${port}`));
    const stopped = new AbortController();
    let made = 0;
    const callers = Array.from({ length: 20 }, async () => {
      for (; !stopped.signal.aborted; made++) await core.getCode({});
    });
    // A rejected one is reported by `Promise.all`.
    for (const caller of callers) caller.catch(() => stopped.abort());
    for (let round = 0; round < 10 && !stopped.signal.aborted; round++) {
      const index = round % 2;
      await sleep(100);
      await servers[index]?.stop(5_000);
      let isCalled = false;
      const getCode = () => {
        isCalled = true;
        return slowly();
      };
      servers[index] = await start({ getCode }, ports[index]);
      await expect.poll(() => isCalled || stopped.signal.aborted, { interval: 10 }).toBe(true);
    }
    stopped.abort();
    await Promise.all(callers);
    expect(made).toBeGreaterThan(100);
  });

  test('a call that a closing connection has not processed is sent to another core', async () => {
    const refusing = createServer();
    onTestFinished(() => void refusing.close());
    let refused = 0;
    refusing.on('stream', (stream) => {
      refused++;
      stream.on('error', () => {});
      stream.close(constants.NGHTTP2_REFUSED_STREAM);
    });
    await once(refusing.listen(0, LOOPBACK), 'listening');
    const other = await serve({ getCode: () => ({ code: { id: 'qr_1' } }) });
    const core = client([`${LOOPBACK}:${(refusing.address() as AddressInfo).port}`, other]);
    await Promise.allSettled([core.getCode({}), core.getCode({})]);
    for (let call = 0; call < 10; call++) expect((await core.getCode({})).code?.id).toBe('qr_1');
    expect(refused).toBeGreaterThan(3);
  });

  test.each([
    ['status 503', { ':status': 503, 'content-type': 'text/plain' }, '', Code.Unavailable],
    ['another content type', { ':status': 200, 'content-type': 'text/html' }, '<html>', Code.Unknown],
    ['half a message', { ':status': 200, 'content-type': 'application/grpc' }, '\0\0\0\0\x09abc', Code.Internal],
    ['a compressed message', { ':status': 200, 'content-type': 'application/grpc' }, '\x01\0\0\0\0', Code.Internal],
    ['no status', { ':status': 200, 'content-type': 'application/grpc' }, '\0\0\0\0\0', Code.Unavailable],
  ])('a response with %s is an error', async (what, headers, body, code) => {
    const server = createServer();
    onTestFinished(() => void server.close());
    server.on('stream', (stream: ServerHttp2Stream) => {
      stream.on('error', () => {});
      stream.respond(headers, { waitForTrailers: what !== 'no status' });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end(Buffer.from(body, 'latin1'));
    });
    await once(server.listen(0, LOOPBACK), 'listening');
    const core = client([`${LOOPBACK}:${(server.address() as AddressInfo).port}`]);
    expect((await failureOf(core.getCode({}))).code).toBe(code);
  });

  test('calls in progress fail when the connection is lost', async () => {
    const sockets = new Set<Socket>();
    const server = createServer();
    onTestFinished(() => void server.close());
    server.on('connection', (socket) => sockets.add(socket));
    await once(server.listen(0, LOOPBACK), 'listening');
    const core = client([`${LOOPBACK}:${(server.address() as AddressInfo).port}`]);
    const calls = [core.getCode({}), core.getCode({})].map(failureOf);
    await Promise.all([once(server, 'stream'), sleep(200)]);
    for (const socket of sockets) socket.destroy();
    for (const call of calls) expect((await call).code).toBe(Code.Unavailable);
  });
});
