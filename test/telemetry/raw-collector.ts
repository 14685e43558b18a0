import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { Server, ServerCredentials, type UntypedHandleCall } from '@grpc/grpc-js';
import { LOOPBACK } from '../../local/free-port.ts';
import { afterFile } from '../harness/after-file.ts';

/** What was sent for one signal: `traces` or `metrics`, as the bytes of its message. */
export interface Export {
  readonly signal: string;
  readonly message: Buffer;
}

/** Accepts OTLP over HTTP as protobuf, without decoding it. Source: OTLP specification 1.9, "OTLP/HTTP". */
export async function protobufCollector(): Promise<{ url: string; exports: Export[] }> {
  const exports: Export[] = [];
  const server = createServer(async (request, response) => {
    const message = await buffer(request);
    if (request.headers['content-type'] !== 'application/x-protobuf') return response.writeHead(415).end();
    exports.push({ signal: request.url?.split('/').at(-1) ?? '', message });
    return response.setHeader('content-type', 'application/x-protobuf').end();
  });
  server.listen(0, LOOPBACK);
  await once(server, 'listening');
  afterFile(async () => void server.close());
  return { url: `http://${LOOPBACK}:${(server.address() as AddressInfo).port}`, exports };
}

/** Accepts OTLP over gRPC, without decoding it. Source: OTLP specification 1.9, "OTLP/gRPC". */
export async function grpcCollector(): Promise<{ url: string; exports: Export[] }> {
  const exports: Export[] = [];
  const server = new Server();
  for (const [signal, service] of [
    ['traces', 'opentelemetry.proto.collector.trace.v1.TraceService'],
    ['metrics', 'opentelemetry.proto.collector.metrics.v1.MetricsService'],
  ] as const) {
    const asIs = (message: Buffer) => message;
    const serialization = {
      requestSerialize: asIs,
      requestDeserialize: asIs,
      responseSerialize: asIs,
      responseDeserialize: asIs,
    };
    const accept: UntypedHandleCall = (call: { request: Buffer }, answer: (error: null, message: Buffer) => void) => {
      exports.push({ signal, message: call.request });
      answer(null, Buffer.alloc(0));
    };
    server.addService(
      { Export: { path: `/${service}/Export`, requestStream: false, responseStream: false, ...serialization } },
      { Export: accept },
    );
  }
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`${LOOPBACK}:0`, ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
  afterFile(async () => server.forceShutdown());
  return { url: `http://${LOOPBACK}:${port}`, exports };
}
