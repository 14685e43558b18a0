import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { createClient, type ServiceImpl } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { INVALID_SPAN_CONTEXT, type Span, type Tracer, trace } from '@opentelemetry/api';
import { type Logger, pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { failure } from '../../common/contract/errors.ts';
import { Health } from '../../proto/gen/grpc/health/v1/health_pb.ts';
import { recordingLogger } from '../../test/harness/recording-logger.ts';
import { serveConnect } from './connect-server.ts';
import { serveGrpc } from './grpc-server.ts';
import { observe } from './observe.ts';

const ended: string[] = [];
trace.setGlobalTracerProvider({
  getTracer: () =>
    ({
      startSpan: (name: string): Span =>
        Object.assign(Object.create(trace.wrapSpanContext(INVALID_SPAN_CONTEXT)), { end: () => ended.push(name) }),
    }) as unknown as Tracer,
});

const PORTS = [
  ['the Connect port', serveConnect],
  ['the gRPC port', serveGrpc],
] as const;

/** Serves a stream, and reads it until its first message; resolves when the call has ended on the server. */
async function leaveStream(
  serve: typeof serveConnect,
  logger: Logger,
  watch: ServiceImpl<typeof Health>['watch'],
): Promise<void> {
  const { gate, interceptor } = observe(logger);
  const server = await serve({
    host: '127.0.0.1',
    port: 0,
    register: (services) => services.service(Health, { watch }),
    gate: gate(async () => {}),
    corsOrigins: [],
    interceptors: [interceptor],
    largeMessages: (_caller, _signal, work) => work(() => undefined),
    logger,
  });
  onTestFinished(() => server.stop(0));
  ended.length = 0;
  const health = createClient(Health, createGrpcTransport({ baseUrl: `http://127.0.0.1:${server.port}` }));
  const left = new AbortController();
  const read = async () => {
    for await (const _status of health.watch({}, { signal: left.signal })) left.abort();
  };
  await expect(read()).rejects.toThrow('canceled');
  await expect.poll(() => ended, { timeout: 5_000 }).toEqual(['grpc.health.v1.Health/Watch']);
}

test.each(PORTS)('the span of a stream ends once when its reader disconnects: %s', async (_, serve) => {
  // A generator learns that its reader has disconnected only by not being resumed.
  await leaveStream(serve, pino({ level: 'silent' }), async function* watch() {
    for (;;) {
      yield {};
      await setImmediate();
    }
  });
});

test.each(PORTS)(
  'a stream that ends because its reader has disconnected is no error in the log: %s',
  async (_, serve) => {
    const { lines, logger } = recordingLogger();
    await leaveStream(serve, logger, async function* watch(_request, { signal }) {
      yield {};
      await sleep(60_000, undefined, { signal });
    });
    await setImmediate();
    expect(lines).toEqual([]);
  },
);

test('what is unavailable is logged once for many calls, with their number, and every defect, the first of them for somebody to act', async () => {
  const { lines, logger } = recordingLogger();
  const { gate, interceptor } = observe(logger);
  let error: Error = failure(
    'UNAVAILABLE',
    'The service is away for a moment; try again.',
    {},
    new Error('no Postgres'),
  );
  const server = await serveGrpc({
    host: '127.0.0.1',
    port: 0,
    register: (services) => services.service(Health, {}),
    gate: gate(async () => {
      throw error;
    }),
    interceptors: [interceptor],
    largeMessages: (_caller, _signal, work) => work(() => undefined),
    logger,
  });
  onTestFinished(() => server.stop(0));
  // Before the server stops, the clock runs again.
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const health = createClient(Health, createGrpcTransport({ baseUrl: `http://127.0.0.1:${server.port}` }));
  const fail = async (times: number) => {
    for (let n = 0; n < times; n++) {
      await expect(health.check({}, { headers: { 'x-request-id': `call-${n}` } })).rejects.toThrow(
        /try again|our side/,
      );
    }
  };
  const logged = () => lines.map((line) => JSON.parse(line));

  await fail(20);
  const method = 'grpc.health.v1.Health/Check';
  const line = { level: 50, method, err: expect.objectContaining({ message: 'no Postgres' }) };
  expect(logged()).toEqual([expect.objectContaining({ ...line, calls: 1, request_id: 'call-0' })]);
  vi.advanceTimersByTime(10_000);
  await fail(1);
  expect(logged().slice(1)).toEqual([expect.objectContaining({ ...line, calls: 20 })]);
  error = new Error('a defect');
  await fail(3);
  expect(logged().slice(2)).toEqual([
    expect.objectContaining({ level: 50, method, msg: 'call failed' }),
    ...Array(2).fill(expect.objectContaining({ level: 40, method, msg: 'call failed again' })),
  ]);
});
