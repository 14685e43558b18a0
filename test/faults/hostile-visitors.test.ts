import { connect, type Socket } from 'node:net';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { contract } from '../contract/client.ts';
import { scanUrl, startVisitors, statusOf } from './visitors.ts';

const EVENTUALLY = { interval: 50 };

// Beyond the limit, idle connections would be replaced by new ones.
const running = contract({ gatewayEnv: { MAX_CONNECTIONS: '20000' } });
let code: CodeJson;
let port: number;
beforeAll(async () => {
  code = await (await running.account()).create();
  port = Number(new URL(running.signpost.url).port);
});

/** Opens a connection to the gateway; undefined when the system has no more file descriptors. */
function open(): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket));
    socket.once('error', () => resolve(undefined));
    onTestFinished(() => void socket.destroy());
  });
}

/** Everything received on a connection, once it is closed. */
function received(socket: Socket): Promise<string> {
  let all = '';
  socket.setEncoding('latin1').on('data', (text: string) => {
    all += text;
  });
  return new Promise((resolve) => socket.once('close', () => resolve(all)));
}

/** Expects that scans by others are answered normally. */
async function expectAnswers(): Promise<void> {
  const visitors = startVisitors(scanUrl(running.signpost, code), 8);
  await expect.poll(() => visitors.answered, EVENTUALLY).toBeGreaterThan(1_000);
  await visitors.stop();
  expect([...visitors.failed, ...visitors.others]).toEqual([]);
}

test('10,000 idle connections', async () => {
  const idle: (Socket | undefined)[] = [];
  // As many as the limits on open files of this process and of the gateway allow.
  while (idle.length < 10_000 && !idle.includes(undefined)) {
    idle.push(...(await Promise.all(Array.from({ length: 100 }, open))));
  }
  const opened = idle.filter((socket) => socket !== undefined);
  expect(opened.length).toBeGreaterThan(process.env.CI ? 9_999 : 500);
  for (const socket of idle.slice(-200)) socket?.destroy();
  await expectAnswers();
  expect(opened.filter((socket) => socket.destroyed).length).toBeLessThanOrEqual(200);
});

test('a slow loris whose request never ends is disconnected', async () => {
  const socket = await open();
  if (!socket) throw new Error('no connection');
  const closed = received(socket);
  socket.write(`GET /r/${code.short_code} HTTP/1.1\r\nhost: signpost.example\r\n`);
  const sending = setInterval(() => void (socket.writable && socket.write('x: y\r\n')), 1_000);
  onTestFinished(() => clearInterval(sending));
  expect(await closed).toMatch(/^HTTP\/1\.1 400 |^$/);
});

test.each([
  ['headers of 20 KB', `x: ${'y'.repeat(20_000)}\r\n`],
  ['5,000 headers', Array.from({ length: 5_000 }, (_, index) => `x-${index}: y\r\n`).join('')],
  ['headers of 10 MB', `x: ${'y'.repeat(10_000_000)}\r\n`],
  ['no colon', 'x\r\n'],
  ['a NUL', 'x: \0\r\n'],
])('%s are rejected, and the connection is closed', async (_, headers) => {
  const socket = await open();
  if (!socket) throw new Error('no connection');
  const closed = received(socket);
  socket.on('error', () => undefined);
  socket.write(`GET /r/${code.short_code} HTTP/1.1\r\nhost: signpost.example\r\n${headers}\r\n`, 'latin1');
  const all = await closed;
  // A client that is still sending when the answer arrives may fail to read it.
  expect(all).toMatch(headers.length < 1_000_000 ? /^HTTP\/1\.1 400 / : /^(HTTP\/1\.1 400 |$)/);
  expect(await statusOf(scanUrl(running.signpost, code))).toBe(302);
});

test('a path of any length is answered', async () => {
  expect(await statusOf(`${running.signpost.url}/r/${'a'.repeat(14_000)}`)).toBe(404);
});
