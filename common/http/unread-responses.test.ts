import { createServer } from 'node:http';
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  createServer as createHttp2Server,
  type ServerHttp2Stream,
} from 'node:http2';
import { type AddressInfo, connect, type Server } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { limitUnreadResponses } from './unread-responses.ts';

const MIB = 1024 * 1024;
const HOST = '127.0.0.1';

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** A server of responses of 1 MiB. `unread`: how much of them clients have not read. */
async function serveStreams(limits: { maxBytes: number; checkMs: number }) {
  const watchResponse = limitUnreadResponses(limits);
  const streams = new Set<{ readonly writableLength: number }>();
  const server = createHttp2Server();
  server.on('stream', (stream: ServerHttp2Stream) => {
    watchResponse(stream, () => stream.destroy());
    streams.add(stream);
    stream.on('error', () => undefined).on('close', () => streams.delete(stream));
    stream.respond();
    stream.end(Buffer.alloc(MIB));
  });
  const port = await portOf(server);
  return {
    unread: () => [...streams].reduce((sum, { writableLength }) => sum + writableLength, 0),
    /** `initialWindowSize`: how much of a response may be sent before the client reads, in bytes. */
    connect(initialWindowSize: number): ClientHttp2Session {
      const session = connectHttp2(`http://${HOST}:${port}`, { settings: { initialWindowSize } });
      onTestFinished(() => session.destroy());
      return session.on('error', () => undefined);
    },
  };
}

/** Requests a response; resolves with how much of it arrived. */
function bytesOf(session: ClientHttp2Session): Promise<number> {
  return new Promise((resolve) => {
    let bytes = 0;
    session
      .request()
      .on('data', (chunk: Buffer) => (bytes += chunk.length))
      .on('error', () => undefined)
      .on('close', () => resolve(bytes));
  });
}

test('closes streams whose clients do not read, the oldest first, until the others are within the limit', async () => {
  const served = await serveStreams({ maxBytes: 4 * MIB, checkMs: 20 });
  const idle = served.connect(0);
  const closed: number[] = [];
  const request = (first: number, last: number) => {
    for (let n = first; n <= last; n++) void bytesOf(idle).then(() => closed.push(n));
  };
  request(1, 4);
  await expect.poll(served.unread).toBe(4 * MIB);
  await pause(100);
  request(5, 10);
  await expect.poll(() => closed).toHaveLength(6);
  expect(closed).toEqual(expect.arrayContaining([1, 2, 3, 4]));
  expect(served.unread()).toBe(4 * MIB);
  const reader = served.connect(65_535);
  for (let n = 0; n < 10; n++) expect(await bytesOf(reader)).toBe(MIB);
});

test('beyond twice the limit, closes responses that a check finds for the first time, too', async () => {
  const served = await serveStreams({ maxBytes: 2 * MIB, checkMs: 1_000 });
  const session = served.connect(0);
  let closed = 0;
  for (let n = 0; n < 10; n++) void bytesOf(session).then(() => closed++);
  await expect.poll(() => closed, { interval: 5 }).toBe(6);
});

test('closes HTTP/1.1 connections whose clients do not read, with what they pipelined', async () => {
  const watchResponse = limitUnreadResponses({ maxBytes: 16 * MIB, checkMs: 20 });
  const server = createServer((request, response) => {
    watchResponse(response, () => request.socket.destroy());
    response.end(Buffer.alloc(8 * MIB));
  });
  const socket = connect(await portOf(server), HOST).pause();
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(5));
  await new Promise((resolve) => server.once('connection', (connection) => connection.once('close', resolve)));
  socket.destroy();
});
