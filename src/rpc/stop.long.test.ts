import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { serveConnect } from './connect-server.ts';
import { serveGrpc } from './grpc-server.ts';
import type { ListeningServer } from './server-options.ts';

/** Longer than any test may take. */
const LONG_MS = 600_000;
const options = {
  host: '127.0.0.1',
  port: 0,
  register: () => {},
  gate: async () => {},
  interceptors: [],
  corsOrigins: [],
};

async function started(serve: (options: never) => Promise<ListeningServer>): Promise<ListeningServer> {
  const server = await serve(options as never);
  onTestFinished(() => server.stop(0));
  return server;
}

/** Opens a connection that sends only `start`. */
async function connectionWith(
  start: string,
  { port }: ListeningServer,
): Promise<{ socket: Socket; ended: Promise<unknown> }> {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  onTestFinished(() => void socket.destroy());
  const ended = once(socket, 'close');
  await once(socket, 'connect');
  socket.write(start);
  socket.resume();
  // Wait until it has arrived.
  await sleep(200);
  return { socket, ended };
}

const NOTHING = '';
const HALF_A_HEAD = 'POST /signpost.codes.v1.CodesService/ListCodes HTTP/1.1\r\nhost: a.example\r\ncontent-ty';
const A_CALL = 'GET /nothing HTTP/1.1\r\nhost: a.example\r\n\r\n';
const HALF_A_PREFACE = 'PRI * HTTP/2.0\r\n';

describe.each([
  ['the Connect port', serveConnect],
  ['the gRPC port', serveGrpc],
])('%s', (_, serve) => {
  test('stop does not wait for connections that have sent nothing', async () => {
    const server = await started(serve);
    const { ended } = await connectionWith(NOTHING, server);
    await server.stop(LONG_MS);
    await ended;
  });

  test.each([HALF_A_HEAD, HALF_A_PREFACE])('stop closes connections with an incomplete start: %j', async (start) => {
    const server = await started(serve);
    const { ended } = await connectionWith(start, server);
    await server.stop(500);
    await ended;
  });
});

test('stop does not wait for HTTP/1.1 connections whose response was sent', async () => {
  const server = await started(serveConnect);
  const { ended } = await connectionWith(A_CALL, server);
  await server.stop(LONG_MS);
  await ended;
});

test('connections that never become calls are closed', async () => {
  const connections = [
    { to: 'the Connect port', serve: serveConnect, starts: [NOTHING, HALF_A_HEAD, HALF_A_PREFACE] },
    { to: 'the gRPC port', serve: serveGrpc, starts: [NOTHING, HALF_A_PREFACE] },
  ].flatMap(({ to, serve, starts }) => starts.map((start) => ({ to, serve, start })));
  const open = new Set(connections);
  // All at once: each takes up to 20 s.
  const closed = connections.map(async (each) => {
    const { ended } = await connectionWith(each.start, await started(each.serve));
    await ended;
    open.delete(each);
  });
  await Promise.race([Promise.all(closed), sleep(40_000)]);
  expect([...open].map(({ to, start }) => [to, start])).toEqual([]);
});

test('a client that has made a call keeps its connection', async () => {
  const server = await started(serveConnect);
  const { socket } = await connectionWith(A_CALL, server);
  const answered = once(socket, 'data');
  socket.write(A_CALL);
  expect(String((await answered)[0])).toContain('HTTP/1.1 404');
});
