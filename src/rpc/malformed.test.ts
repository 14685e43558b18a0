import { randomBytes } from 'node:crypto';
import { connect } from 'node:http2';
import { Code, createClient } from '@connectrpc/connect';
import { findTrailerError } from '@connectrpc/connect/protocol-grpc';
import { createGrpcTransport } from '@connectrpc/connect-node';
import grpc from '@grpc/grpc-js';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { Health } from '../../proto/gen/grpc/health/v1/health_pb.ts';
import { MAX_MESSAGE_BYTES } from './message-limits.ts';
import { type Serving, startServing } from './serve.fixture.ts';

let serving: Serving;
beforeAll(async () => {
  serving = await startServing();
});

const STATUS_DETAILS = 'grpc-status-details-bin';
const native = () => `localhost:${serving.grpcPort}`;
const onConnectPort = () => `localhost:${serving.connectPort}`;
const asTheyAre = (bytes: Buffer) => bytes;

/** A status, and the reasons in its details. */
function described({ code, details, metadata }: grpc.StatusObject) {
  const headers = new Headers({ 'grpc-status': String(code), 'grpc-message': details });
  for (const bytes of metadata.get(STATUS_DETAILS)) headers.set(STATUS_DETAILS, Buffer.from(bytes).toString('base64'));
  const reasons = findTrailerError(headers)
    ?.findDetails(ErrorInfoSchema)
    .map(({ reason }) => reason);
  return { code, details, reasons };
}

async function statusOf(
  address: string,
  path: string,
  bytes: Buffer,
  streamed: boolean,
  headers: Readonly<Record<string, string>> = {},
) {
  const metadata = grpc.Metadata.fromHttp2Headers(headers);
  const client = new grpc.Client(address, grpc.credentials.createInsecure());
  try {
    if (streamed) {
      const call = client.makeServerStreamRequest(path, asTheyAre, asTheyAre, bytes, metadata).resume();
      return await new Promise<grpc.StatusObject>((resolve) => call.on('error', () => {}).on('status', resolve));
    }
    return await new Promise<grpc.StatusObject>((resolve, reject) => {
      const call = client.makeUnaryRequest(
        path,
        asTheyAre,
        asTheyAre,
        bytes,
        metadata,
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
    const status = await statusOf(address(), `/grpc.health.v1.Health/${method}`, bytes, streamed);
    expect(described(status)).toEqual({
      code: Code.InvalidArgument,
      details: expect.stringMatching(/^The message .*\.$/),
      reasons: ['INVALID_FIELD'],
    });
  }
});

test('bytes that cannot be decompressed are rejected with a sentence over Connect, too', async () => {
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
  const call = { method: 'POST', headers, body: '{}' };
  const response = await fetch(`http://${onConnectPort()}/grpc.health.v1.Health/Check`, call);
  expect(await response.json()).toMatchObject({
    code: 'invalid_argument',
    message: 'The message cannot be decompressed or parsed.',
  });
});

test.each([
  ['native gRPC', native],
  ['gRPC on the Connect port', onConnectPort],
])('a message too large for a stream is rejected as too large: %s', async (_, address) => {
  const health = createClient(Health, createGrpcTransport({ baseUrl: `http://${address()}` }));
  const watch = Array.fromAsync(health.watch({ service: 'x'.repeat(MAX_MESSAGE_BYTES) }));
  await expect(watch.catch(readFailure)).resolves.toMatchObject({
    reason: 'MESSAGE_TOO_LARGE',
    message: 'The message must have at most 8 KiB.',
  });
});

/** Sends one call as a client without a library does: any headers, and any bytes as its envelopes. */
function send(address: string, headers: Readonly<Record<string, string>>, envelopes: Buffer) {
  return new Promise<ReturnType<typeof described>>((resolve, reject) => {
    const session = connect(`http://${address}`);
    session.on('error', reject);
    const grpcHeaders = { 'content-type': 'application/grpc', te: 'trailers' };
    const stream = session.request({ ':method': 'POST', ...grpcHeaders, ...headers });
    const answer: Record<string, unknown> = {};
    const collect = (given: object) => void Object.assign(answer, given);
    stream.on('response', collect).on('trailers', collect).on('error', reject).resume();
    stream.on('close', () => {
      session.close();
      const { 'grpc-status': code, 'grpc-message': message = '', [STATUS_DETAILS]: binary } = answer;
      const metadata = new grpc.Metadata();
      if (binary !== undefined) metadata.set(STATUS_DETAILS, Buffer.from(String(binary), 'base64'));
      resolve(described({ code: Number(code), details: decodeURIComponent(String(message)), metadata }));
    });
    stream.end(envelopes);
  });
}

const CHECK = { ':path': '/grpc.health.v1.Health/Check' };
const EMPTY = Buffer.alloc(5);
/** A compressed message of one byte, which is none. */
const COMPRESSED = Buffer.of(1, 0, 0, 0, 1, 0xff);

describe.each([
  ['native gRPC', native],
  ['gRPC on the Connect port', onConnectPort],
])('%s says why in every error that its library raises:', (_, address) => {
  test.each([
    ['an unknown method', { ':path': '/none/None' }, EMPTY, Code.Unimplemented, 'UNIMPLEMENTED'],
    ['no message', CHECK, Buffer.alloc(0), Code.Unimplemented, 'UNIMPLEMENTED'],
    ['two messages', CHECK, Buffer.concat([EMPTY, EMPTY]), Code.Unimplemented, 'UNIMPLEMENTED'],
    ['unknown compression', { ...CHECK, 'grpc-encoding': 'zip' }, COMPRESSED, Code.Unimplemented, 'UNIMPLEMENTED'],
    ['invalid gzip', { ...CHECK, 'grpc-encoding': 'gzip' }, COMPRESSED, Code.InvalidArgument, 'INVALID_FIELD'],
    ['compression without its name', CHECK, COMPRESSED, Code.InvalidArgument, 'INVALID_FIELD'],
    ['a message over the limit', CHECK, Buffer.of(0, 0x7f, 0, 0, 0), Code.ResourceExhausted, 'MESSAGE_TOO_LARGE'],
  ])('%s', async (_case, headers, envelopes, code, reason) => {
    expect(await send(address(), headers, envelopes)).toMatchObject({ code, reasons: [reason] });
  });
});

test.each([
  ['native gRPC', native],
  ['gRPC on the Connect port', onConnectPort],
])('the error of an unknown method names it: %s', async (_, address) => {
  const { details } = await send(address(), { ':path': '/none/None' }, EMPTY);
  expect(details).toBe('There is no method /none/None.');
});

test('headers that can’t be read, such as a key with a foreign character, are not printed', async () => {
  const printed = vi.spyOn(console, 'error').mockReturnValue();
  onTestFinished(() => printed.mockRestore());
  await send(native(), { ...CHECK, authorization: 'Bearer sk_live_ä' }, EMPTY);
  expect(printed.mock.calls).toEqual([]);
});
