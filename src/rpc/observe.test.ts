import { setImmediate } from 'node:timers/promises';
import { createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import { INVALID_SPAN_CONTEXT, type Span, type Tracer, trace } from '@opentelemetry/api';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { Health } from '../../proto/gen/grpc/health/v1/health_pb.ts';
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

test.each([
  ['the Connect port', serveConnect],
  ['the gRPC port', serveGrpc],
])('the span of a stream ends once when its reader disconnects: %s', async (_, serve) => {
  const { gate, interceptor } = observe(pino({ level: 'silent' }));
  const server = await serve({
    host: '127.0.0.1',
    port: 0,
    register: (services) =>
      services.service(Health, {
        // A generator learns that its reader has left only by not being resumed.
        async *watch() {
          for (;;) {
            yield {};
            await setImmediate();
          }
        },
      }),
    gate: gate(async () => {}),
    interceptors: [interceptor],
    largeMessages: (_caller, _signal, work) => work(),
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
});
