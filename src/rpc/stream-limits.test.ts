import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import { type AddressInfo, connect as openSocket, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import {
  callHeaders,
  END_HEADERS,
  END_STREAM,
  frame,
  framesIn,
  number32,
  opening,
} from '../../test/hostile/http2-frames.ts';
import { limitStreams } from './stream-limits.ts';

const UNREAD_MS = 300;
const MAX = 40;

/** More than a client's flow-control window. */
const LARGE = Buffer.alloc(1_000_000);

/** Starts a server whose streams `handle` answers; returns a function that connects clients. */
async function serving(handle: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void) {
  const server = createServer({ settings: { maxConcurrentStreams: 1_000 } });
  server.on('stream', handle);
  limitStreams(server, { max: MAX, unreadMs: UNREAD_MS });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  onTestFinished(() => void server.close());
  return {
    session(): ClientHttp2Session {
      const session = connect(`http://127.0.0.1:${port}`).on('error', () => {});
      onTestFinished(() => session.destroy());
      return session;
    },
    socket(): Socket {
      const socket = openSocket(port, '127.0.0.1').on('error', () => {});
      onTestFinished(() => void socket.destroy());
      return socket;
    },
  };
}

function call(session: ClientHttp2Session): ClientHttp2Stream {
  return session.request({ ':path': '/' }).on('error', () => {});
}

function closeOf(stream: ClientHttp2Stream): Promise<void> {
  return new Promise((resolve) =>
    stream.closed && stream.destroyed ? resolve() : stream.once('close', () => resolve()),
  );
}

test('a call whose response is not read is closed, and one that waits for its response is not', async () => {
  const streams: ServerHttp2Stream[] = [];
  const session = (await serving((stream) => streams.push(stream))).session();
  const [unread, waiting] = [call(session), call(session)];
  unread.pause();
  await expect.poll(() => streams.length).toBe(2);
  const started = performance.now();
  streams[0]?.respond();
  streams[0]?.end(LARGE);
  await expect.poll(() => streams[0]?.destroyed).toBe(true);
  expect(performance.now() - started).toBeGreaterThan(UNREAD_MS / 2);
  expect(streams[1]?.closed).toBe(false);
  streams[1]?.respond();
  streams[1]?.end('answer');
  expect(await waiting.setEncoding('utf8').toArray()).toEqual(['answer']);
});

test('connections share the limit, and calls beyond it are refused as retryable', async () => {
  let accepted = 0;
  const server = await serving(() => accepted++);
  const [greedy, modest] = [server.session(), server.session()];
  const calls = Array.from({ length: MAX + 10 }, () => call(greedy));
  await Promise.all(calls.slice(MAX).map((each) => closeOf(each)));
  expect(calls.slice(MAX).map(({ rstCode }) => rstCode)).toEqual(Array(10).fill(constants.NGHTTP2_REFUSED_STREAM));
  await expect.poll(() => accepted).toBe(MAX);
  const own = call(modest);
  await expect.poll(() => accepted).toBe(MAX + 1);
  expect(own.closed).toBe(false);
  // Ended calls free their slots.
  for (const each of calls) each.close(constants.NGHTTP2_CANCEL);
  await Promise.all(calls.map((each) => closeOf(each)));
  for (let n = 0; n < MAX / 2; n++) call(greedy);
  await expect.poll(() => accepted).toBe(MAX + 1 + MAX / 2);
});

test('a call that its client resets at once is not handled, and one without a body is', async () => {
  const paths: (string | undefined)[] = [];
  const server = await serving((stream, headers) => {
    paths.push(headers[':path']);
    stream.on('end', () => stream.respond({}, { endStream: true })).resume();
  });
  const reset = (stream: number) =>
    Buffer.concat([
      frame('headers', END_HEADERS, stream, callHeaders('reset')),
      frame('reset', 0, stream, number32(8)),
    ]);
  const last = frame('headers', END_HEADERS | END_STREAM, 41, callHeaders('last'));
  const socket = server.socket();
  socket.write(Buffer.concat([opening(), ...Array.from({ length: 20 }, (_, n) => reset(2 * n + 1)), last]));
  let received = Buffer.alloc(0);
  socket.on('data', (bytes: Buffer) => {
    received = Buffer.concat([received, bytes]);
  });
  await expect.poll(() => framesIn(received).some(({ stream }) => stream === 41)).toBe(true);
  expect(paths).toEqual(['/last']);
});
