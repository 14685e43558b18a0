import { randomBytes } from 'node:crypto';
import { Code, createClient } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import grpc from '@grpc/grpc-js';
import { beforeAll, expect, test } from 'vitest';
import { Health } from '../../proto/gen/grpc/health/v1/health_pb.ts';
import { MAX_MESSAGE_BYTES } from './message-limits.ts';
import { type Serving, startServing } from './serve.fixture.ts';

let serving: Serving;
beforeAll(async () => {
  serving = await startServing();
});

const native = () => `localhost:${serving.grpcPort}`;
const onConnectPort = () => `localhost:${serving.connectPort}`;
const asTheyAre = (bytes: Buffer) => bytes;

async function statusOf(address: string, path: string, bytes: Buffer, streamed: boolean) {
  const client = new grpc.Client(address, grpc.credentials.createInsecure());
  try {
    if (streamed) {
      const call = client.makeServerStreamRequest(path, asTheyAre, asTheyAre, bytes).resume();
      return await new Promise<grpc.StatusObject>((resolve) => call.on('error', () => {}).on('status', resolve));
    }
    return await new Promise<grpc.StatusObject>((resolve, reject) => {
      const call = client.makeUnaryRequest(
        path,
        asTheyAre,
        asTheyAre,
        bytes,
        (error) => error ?? reject(new Error('read')),
      );
      call.on('status', resolve);
    });
  } finally {
    client.close();
  }
}

// Field number 0 and lengths beyond the end are invalid.
const MALFORMED = Array.from({ length: 20 }, (_, length) =>
  Buffer.concat([Buffer.of(length % 2 ? 0 : 0x0a, 0xff), randomBytes(length).fill(0xff)]),
);

test.each([
  ['a single answer, native gRPC', native, 'Check', false],
  ['a stream, native gRPC', native, 'Watch', true],
  ['a stream, gRPC on the Connect port', onConnectPort, 'Watch', true],
])('bytes that are not a message are rejected with a sentence: %s', async (_, address, method, streamed) => {
  for (const bytes of MALFORMED) {
    const { code, details } = await statusOf(address(), `/grpc.health.v1.Health/${method}`, bytes, streamed);
    expect({ code, details }).toEqual({
      code: Code.InvalidArgument,
      details: expect.stringMatching(/^The message .*\.$/),
    });
  }
});

test.each([
  ['native gRPC', native],
  ['gRPC on the Connect port', onConnectPort],
])('a message too large for a stream is rejected as too large: %s', async (_, address) => {
  const health = createClient(Health, createGrpcTransport({ baseUrl: `http://${address()}` }));
  const watch = Array.fromAsync(health.watch({ service: 'x'.repeat(MAX_MESSAGE_BYTES) }));
  await expect(watch).rejects.toMatchObject({ code: Code.ResourceExhausted });
});
