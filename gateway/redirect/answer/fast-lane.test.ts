import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type FastLane, openFastLane } from './fast-lane.ts';
import { pageFor } from './pages.ts';
import type { Reply, ScanRequest } from './scan-request.ts';

/** More than the kernel buffers. */
const LARGE_PAGE = { headers: {}, body: Buffer.alloc(16 * 1024 * 1024) };

const MEDIUM_PAGE = { headers: {}, body: Buffer.alloc(16 * 1024) };

/** The number of scans received. */
let scanCount = 0;
/** Pending replies by short code. */
const open = new Map<string, Reply>();
let lane: FastLane;
let refusals: string[];
/** Closes idle connections, as the lane does every five seconds. */
let sweep: () => void;
let server: ReturnType<typeof createServer>;

beforeEach(async () => {
  open.clear();
  scanCount = 0;
  server = createServer((request, response) => response.end(`by Node: ${request.method} ${request.url}`));
  const scans = {
    ownsHost: () => false,
    answered: () => 0,
    answer({ shortCode = '', method, headers }: ScanRequest, reply: Reply) {
      scanCount++;
      if (shortCode.startsWith('wait')) open.set(shortCode, reply);
      else if (shortCode === 'large') reply.page('id', 404, LARGE_PAGE);
      else if (shortCode === 'medium') reply.page('id', 404, MEDIUM_PAGE);
      else if (shortCode.startsWith('page')) reply.page('id', 404, pageFor('unknown', headers['accept-language']));
      else setImmediate(() => reply.redirect('id', `https://a.example/${method}/${shortCode}`));
    },
  };
  refusals = [];
  const intervals = vi.spyOn(globalThis, 'setInterval');
  lane = openFastLane(server, scans, undefined, (reason) => void refusals.push(reason));
  [sweep] = intervals.mock.calls[0] as [() => void];
  intervals.mockRestore();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  lane.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

interface Client {
  readonly socket: Socket;
  /** Resolves with everything received once it contains `text` `times` times. */
  received(text: string, times?: number): Promise<string>;
  /** Resolves with everything received once the server has closed the connection. */
  readonly ended: Promise<string>;
}

function client(): Client {
  const { port } = server.address() as AddressInfo;
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).setEncoding('latin1');
  let all = '';
  socket.on('data', (text: string) => {
    all += text;
  });
  const ended = once(socket, 'end').then(() => {
    socket.end();
    return all;
  });
  return {
    socket,
    ended,
    async received(text, times = 1) {
      for (let [found, from] = [0, 0]; ; ) {
        for (let at = all.indexOf(text, from); at >= 0; at = all.indexOf(text, from)) {
          found++;
          from = at + text.length;
        }
        if (found >= times) return all;
        await once(socket, 'data');
      }
    },
  };
}

function get(path: string, method = 'GET'): string {
  return `${method} ${path} HTTP/1.1\r\nhost: a.example\r\n\r\n`;
}

function locations(text: string): string[] {
  return [...text.matchAll(/^location: (\S*)$/gm)].map(([, location = '']) => location);
}

test('scans are answered over one connection, with complete responses', async () => {
  const { socket, received } = client();
  socket.write(get('/r/one'));
  const answer = await received('\r\n\r\n');
  expect(answer).toMatch(
    /^HTTP\/1\.1 302 Found\r\nx-request-id: id\r\nlocation: https:\/\/a\.example\/GET\/one\r\ncache-control: no-store\r\ncontent-length: 0\r\ndate: [^\r]+ GMT\r\n\r\n$/,
  );
  expect(Math.abs(Date.parse(/date: (.*)\r/.exec(answer)?.[1] ?? '') - Date.now())).toBeLessThan(60_000);
  socket.write(get('/r/two', 'HEAD'));
  expect(locations(await received('\r\n\r\n', 2))).toEqual(['https://a.example/GET/one', 'https://a.example/HEAD/two']);
});

test.each([1_000_000, 5_000, 333, 64])('pipelined requests are answered in order, %i bytes at a time', async (cut) => {
  const paths = Array.from({ length: 300 }, (_, index) => (index % 3 === 0 ? `page${index}` : `scan${index}`));
  const text = paths.map((path) => get(`/r/${path}`, path.startsWith('page') ? 'HEAD' : 'GET')).join('');
  const { socket, received } = client();
  for (let at = 0; at < text.length; at += cut) {
    socket.write(text.slice(at, at + cut));
    await new Promise(setImmediate);
  }
  // From the first incomplete request on, Node's server answers, which does not redirect here.
  const all = await received('HTTP/1.1 ', paths.length);
  const scans = paths.filter((path) => path.startsWith('scan'));
  const inOrder = [...all.matchAll(/(?:a\.example|by Node:).GET.(?:.r.)?(scan\d+)/g)].map(([, scan]) => scan);
  expect(inOrder).toEqual(scans);
  if (cut > text.length) expect(locations(all)).toHaveLength(scans.length);
});

test('a pipelined request waits for a slow response before it', async () => {
  const { socket, received } = client();
  socket.write(get('/r/wait') + get('/r/next'));
  await expect.poll(() => open.has('wait')).toBe(true);
  socket.write(get('/r/later'));
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(socket.bytesRead).toBe(0);
  open.get('wait')?.redirect('id', 'https://a.example/GET/wait');
  expect(locations(await received('/later'))).toEqual(
    ['wait', 'next', 'later'].map((code) => `https://a.example/GET/${code}`),
  );
});

describe('a request of another kind goes to Node, and so does the connection from then on:', () => {
  test('in one piece', async () => {
    const { socket, received } = client();
    socket.write(get('/r/one'));
    await received('/one');
    socket.write(get('/api'));
    await received('by Node: GET /api');
    socket.write(get('/r/two'));
    expect(await received('by Node: GET /r/two')).not.toContain('a.example/GET/two');
  });

  test('in many pieces', async () => {
    const { socket, received } = client();
    for (const character of get('/r/one')) {
      socket.write(character);
      await new Promise(setImmediate);
    }
    await received('by Node: GET /r/one');
  });

  test('pipelined after a scan', async () => {
    const { socket, received } = client();
    const body = 'POST /api HTTP/1.1\r\nhost: a.example\r\ncontent-length: 5\r\n\r\nhello';
    socket.write(`${get('/r/one')}${body}${get('/r/two')}`);
    const all = await received('by Node: GET /r/two');
    expect(all.indexOf('a.example/GET/one')).toBeLessThan(all.indexOf('by Node: POST /api'));
  });
});

describe('end of a connection:', () => {
  test('a client that has closed its side still gets its responses', async () => {
    const { socket, ended } = client();
    socket.end(get('/r/one') + get('/r/two') + get('/r/three'));
    expect(locations(await ended)).toHaveLength(3);
  });

  test('a client that closes its side while a response is pending gets it', async () => {
    const { socket, ended } = client();
    socket.end(get('/r/wait'));
    await expect.poll(() => open.has('wait')).toBe(true);
    open.get('wait')?.redirect('id', 'https://a.example/');
    expect(await ended).toContain('connection: close');
  });

  test('a client that disconnects before its response affects no other', async () => {
    const { socket } = client();
    socket.write(get('/r/wait'));
    await expect.poll(() => open.has('wait')).toBe(true);
    socket.resetAndDestroy();
    await new Promise((resolve) => setTimeout(resolve, 50));
    open.get('wait')?.redirect('id', 'https://a.example/');
    const next = client();
    next.socket.write(get('/r/one'));
    await next.received('/one');
  });

  test.each([
    ['few bytes', 'one', 100],
    ['more bytes than the kernel buffers', 'large', LARGE_PAGE.body.length],
  ])('a client gets the whole response to its last request: %s', async (_, code, bytes) => {
    const { socket, ended } = client();
    socket.write(`GET /r/${code} HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n\r\n`);
    expect((await ended).length).toBeGreaterThan(bytes);
  });

  test('a client may read the response to its last request for longer than a connection may be idle', async () => {
    const accepted = once(server, 'connection');
    const { port } = server.address() as AddressInfo;
    const slow = connect(port, '127.0.0.1').pause();
    onTestFinished(() => void slow.destroy());
    const [connection]: Socket[] = await accepted;
    slow.write('GET /r/large HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n\r\n');
    await expect.poll(() => connection?.writableLength).toBeGreaterThan(0);
    for (let sweeps = 0; sweeps < 20; sweeps++) sweep();
    await once(slow.resume(), 'end');
    expect(slow.bytesRead).toBeGreaterThan(LARGE_PAGE.body.length);
  });

  test('a connection is closed soon after its last response although its client keeps it open', async () => {
    const accepted = once(server, 'connection');
    const { socket, received } = client();
    const [connection]: Socket[] = await accepted;
    socket.removeAllListeners('end');
    lane.drain();
    socket.write(get('/r/one'));
    await received('connection: close');
    expect(connection?.destroyed).toBe(false);
    for (let sweeps = 0; sweeps < 2; sweeps++) sweep();
    expect(connection?.destroyed).toBe(true);
  });

  test('while draining, each connection is closed after its response', async () => {
    const { socket, ended } = client();
    await once(socket, 'connect');
    lane.drain();
    socket.write(get('/r/one'));
    expect(await ended).toContain('connection: close');
  });

  test('on stop, idle connections are closed at once and others after their response', async () => {
    const idle = client();
    const waiting = client();
    await once(idle.socket, 'connect');
    waiting.socket.write(get('/r/wait'));
    await expect.poll(() => open.has('wait')).toBe(true);
    lane.end();
    expect(await idle.ended).toBe('');
    open.get('wait')?.redirect('id', 'https://a.example/');
    expect(await waiting.ended).toContain('connection: close');
  });

  test('on stop, a connection is closed once its client has read the response', async () => {
    const { port } = server.address() as AddressInfo;
    const slow = connect(port, '127.0.0.1');
    slow.write(get('/r/large'));
    await expect.poll(() => scanCount).toBe(1);
    lane.end();
    await once(slow.resume(), 'end');
    expect(slow.bytesRead).toBeGreaterThan(LARGE_PAGE.body.length);
  });
});

test('a client that reads nothing is not read from, and resumes where it stopped', async () => {
  const { port } = server.address() as AddressInfo;
  const socket = connect(port, '127.0.0.1');
  const pages = 20_000;
  socket.write(get('/r/large') + get('/r/page').repeat(pages));
  await expect.poll(() => scanCount).toBe(1);
  // By the time that another connection is answered, the next request of this one would have been, too.
  const other = client();
  other.socket.write(get('/r/one'));
  await other.received('/one');
  expect(scanCount).toBe(2);
  let [answers, tail] = [0, ''];
  socket.setEncoding('latin1').on('data', (more: string) => {
    const all = tail + more;
    answers += all.split('HTTP/1.1 ').length - 1;
    tail = all.slice(-8);
  });
  await expect.poll(() => answers).toBe(1 + pages);
});

test('a connection is closed once a client that has ended it has read its response', async () => {
  const { socket, ended } = client();
  socket.pause().write(get('/r/large'));
  await expect.poll(() => scanCount).toBe(1);
  socket.end();
  await new Promise((resolve) => setTimeout(resolve, 100));
  socket.resume();
  expect((await ended).length).toBeGreaterThan(LARGE_PAGE.body.length);
});

test('at most one response of a connection waits for a client that reads nothing', async () => {
  const accepted = once(server, 'connection');
  const reader = connect((server.address() as AddressInfo).port, '127.0.0.1').pause();
  onTestFinished(() => void reader.destroy());
  const [connection]: Socket[] = await accepted;
  reader.write(get('/r/medium').repeat(1_000));
  await expect.poll(() => connection?.writableLength).toBeGreaterThan(0);
  const other = client();
  for (let answers = 1; answers <= 10; answers++) {
    other.socket.write(get('/r/one'));
    await other.received('/one', answers);
  }
  expect(connection?.writableLength).toBeLessThan(2 * MEDIUM_PAGE.body.length);
});

test('clients that leave more than 128 MiB unread lose their connections, each of which is counted once', async () => {
  const { port } = server.address() as AddressInfo;
  const clients = Array.from({ length: 20 }, () => connect(port, '127.0.0.1').pause());
  onTestFinished(() => clients.forEach((socket) => void socket.destroy()));
  const connections = new Set<Socket>();
  server.on('connection', (socket) => {
    connections.add(socket);
    socket.on('close', () => connections.delete(socket));
  });
  for (const [index, socket] of clients.entries()) {
    const last = index % 2 === 0 ? 'connection: close\r\n' : '';
    socket.on('error', () => undefined).write(`GET /r/large HTTP/1.1\r\nhost: a.example\r\n${last}\r\n`);
  }
  await expect.poll(() => scanCount).toBe(clients.length);
  const unread = () => [...connections].reduce((sum, { writableLength }) => sum + writableLength, 0);
  await expect.poll(unread, { timeout: 4_000 }).toBeLessThan(128 * 1024 * 1024);
  expect(connections.size).toBeGreaterThan(5);
  expect(refusals).toEqual(Array(clients.length - connections.size).fill('unread_answers'));
});
