import { METHODS } from 'node:http';
import fc from 'fast-check';
import { afterEach, beforeAll, expect, test } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { contract } from '../contract/client.ts';
import { childrenOf, scanUrl, statusOf } from '../faults/visitors.ts';
import { COLLECTING, expectReturned, type Figures, figuresOf } from './process-resources.ts';
import { forEach, rawSockets, statusesIn } from './raw-sockets.ts';

/**
 * Raw sockets against the gateway's port. Whatever they send, the same processes keep answering, and their sockets,
 * descriptors and memory return to normal. fast-check prints the seed of a failure.
 */
const running = contract({ env: COLLECTING });
let code: CodeJson;
let scan: string;
let post: string;
let before: { readonly workers: number[]; readonly carrier: number[] } & Figures;
const { open, exchange, reset, destroyAll } = rawSockets(() => Number(new URL(running.signpost.url).port));
/** A worker's connections to Postgres, whose number varies. */
const TO_POSTGRES = 2;

beforeAll(async () => {
  const account = await running.account();
  code = await account.create();
  scan = `GET /r/${code.short_code} HTTP/1.1\r\nHost: signpost.example\r\nUser-Agent: a phone\r\n\r\n`;
  const json = '{"target_url":"https://example.com/"}';
  post = `POST /api/v1/qr-codes HTTP/1.1\r\nHost: a\r\nContent-Length: ${json.length}\r\n\r\n${json}`;
  // Opens the connections to Postgres and the core that stay open.
  await Promise.all([exchange(scan), exchange(post), statusOf(`${running.signpost.url}/r/zzzzzzz`)]);
  const pids = await workers();
  before = { workers: pids, carrier: await carrier(), ...(await figuresOf(pids)) };
});

/** The state that every test must leave. */
afterEach(async () => {
  destroyAll();
  expect(await workers()).toEqual(before.workers);
  expect(await carrier()).toEqual(before.carrier);
  expect(await statusOf(scanUrl(running.signpost, code))).toBe(302);
  await expectReturned(before.workers, before, TO_POSTGRES);
  expect(await running.signpost.gateways[0]?.log()).not.toMatch(/has exited|does not respond/);
});

async function workers(): Promise<number[]> {
  const [gateway] = running.signpost.gateways;
  return gateway ? childrenOf(gateway, 'gateway/worker.ts') : [];
}

async function carrier(): Promise<number[]> {
  const [gateway] = running.signpost.gateways;
  return gateway ? childrenOf(gateway, 'gateway/carrier.ts') : [];
}

async function openSockets(): Promise<number> {
  return (await figuresOf(await workers())).sockets;
}

test('every method, on every kind of target, answered or reset', async () => {
  const methods = [...METHODS, 'PRI', 'NONE', 'get'];
  const targets = [`/r/${code.short_code}`, '/api/v1/qr-codes', '/', '*', 'a:1', 'http://a.example/r/a'];
  const more = [
    '',
    'Upgrade: websocket\r\nConnection: upgrade\r\n',
    'Upgrade: h2c\r\n',
    'Content-Length: 3\r\n\r\nabc',
  ];
  const requests = methods.flatMap((method) =>
    targets.flatMap((target) =>
      more.map((headers) => `${method} ${target} HTTP/1.1\r\nHost: a.example\r\n${headers}\r\n`),
    ),
  );
  await forEach(requests, async (request) => {
    const statuses = statusesIn(await exchange(request));
    // Node closes the connection on `PRI`, which begins HTTP/2.
    expect(statuses, request).toEqual(
      request.startsWith('PRI') ? expect.any(Array) : expect.arrayContaining([expect.any(Number)]),
    );
    for (const status of statuses) expect(status, request).toBeLessThan(500);
  });
  await forEach(requests, reset);
});

test('CONNECT followed by a reset, repeatedly', async () => {
  const body = 'Content-Length: 5\r\n';
  const requests = ['', body, 'Transfer-Encoding: chunked\r\n'].flatMap((headers) =>
    Array<string>(60).fill(`CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n${headers}\r\n`),
  );
  await forEach(requests, reset);
  await forEach(requests.slice(0, 60), async (request) => reset(`${post}${request}`));
});

test('connections after CONNECT or garbage are closed even if their clients never close them', async () => {
  const sockets = Array.from({ length: 100 }, (_, n) => {
    const socket = open();
    socket.write(n % 2 === 0 ? 'CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n' : 'garbage\r\n\r\n');
    return socket.resume();
  });
  await expect.poll(() => sockets.every((socket) => socket.bytesRead > 0)).toBe(true);
  // Only the server closes; the clients' ends are still open.
  await expect.poll(openSockets, { interval: 200 }).toBeLessThanOrEqual(before.sockets + TO_POSTGRES);
});

test('every split point of a scan and of a POST', async () => {
  const places = Array.from({ length: (scan + post + scan).length - 1 }, (_, index) => index + 1);
  await forEach(places, async (at) => {
    const whole = scan + post + scan;
    const statuses = statusesIn(await exchange(whole.slice(0, at), whole.slice(at)));
    // A POST without a key is answered before its body has arrived, and its connection is closed then.
    const isBodyCut = at >= scan.length && at < scan.length + post.length;
    expect(isBodyCut ? [...statuses, 302].slice(0, 3) : statuses, String(at)).toEqual([302, 401, 302]);
  });
});

test('a half-close after every byte', async () => {
  const whole = scan + post;
  const places = Array.from({ length: whole.length }, (_, index) => index);
  await forEach(places, async (at) => {
    const expected = [...(at >= scan.length ? [302] : []), ...(at === 0 || at === scan.length ? [] : [400])];
    const statuses = statusesIn(await exchange(whole.slice(0, at)));
    // A POST without a key may be answered before its body has arrived.
    if (statuses.at(-1) === 401) expected.splice(-1, 1, 401);
    expect(statuses, String(at)).toEqual(expected);
  });
});

test('a reset after every byte', async () => {
  const whole = scan + post;
  await forEach(
    Array.from({ length: whole.length + 1 }, (_, index) => index),
    (at) => reset(whole.slice(0, at)),
  );
});

test('any bytes, before, behind and in the middle of requests', async () => {
  const garbage = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString('latin1'));
  const piece = fc.oneof(garbage, fc.constantFrom(scan, post, scan.slice(0, 20), post.slice(0, -3), '\r\n', '\0'));
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { minLength: 1, maxLength: 4 }), fc.boolean(), async (pieces, resets) => {
      if (resets) return reset(pieces.join(''));
      for (const status of statusesIn(await exchange(...pieces))) expect(status).toBeLessThan(500);
    }),
    { numRuns: 300, interruptAfterTimeLimit: 15_000, markInterruptAsFailure: false },
  );
});

test('hundreds of idle and slow connections delay no one else', async () => {
  const idle = Array.from({ length: 400 }, open);
  const slow = Array.from({ length: 400 }, open);
  let sent = 0;
  const head = `${scan.slice(0, -2)}x: ${'y'.repeat(5_000)}`;
  const sending = setInterval(() => {
    for (const socket of slow) socket.write(head[sent] ?? '');
    sent++;
  }, 50);
  await expect.poll(openSockets).toBeGreaterThanOrEqual(800);
  for (let n = 0; n < 50; n++) expect(await statusOf(scanUrl(running.signpost, code))).toBe(302);
  clearInterval(sending);
  for (const socket of [...idle, ...slow]) socket.destroy();
});

test('a client that pipelines endlessly has few requests in progress, and the others are rejected', async () => {
  const read = 'GET /api/v1/qr-codes HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer sk_live_x\r\n\r\n';
  const statuses = statusesIn(await exchange(read.repeat(1_000)));
  expect(statuses.slice(0, 100)).not.toContain(429);
  for (const status of statuses) expect([401, 429]).toContain(status);
});
