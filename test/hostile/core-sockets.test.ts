import { METHODS } from 'node:http';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { coreUnderAttack, PORTS } from './core-under-attack.ts';
import { healthCheck, opening, servingIn } from './http2-frames.ts';
import { forEach, statusesIn } from './raw-sockets.ts';

/** Raw sockets against both ports of a core. fast-check prints the seed of a failure. */
const { raw, goesOn, figures } = coreUnderAttack();

const json = '{}';
const call = (method: string) =>
  `POST /${method} HTTP/1.1\r\nHost: a.example\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n${json}`;
const CHECK = call('grpc.health.v1.Health/Check');
const LIST = call('signpost.codes.v1.CodesService/ListCodes');
const HTTP1 = CHECK + LIST;
const HTTP2 = Buffer.concat([opening(), healthCheck(1), healthCheck(3)]);

function placesIn({ length }: string | Buffer): number[] {
  return Array.from({ length: length + 1 }, (_, index) => index);
}

test('every method of HTTP/1.1, on every kind of target, answered or reset', async () => {
  const { exchange, reset } = raw.corePort;
  const targets = ['/grpc.health.v1.Health/Check', '/signpost.codes.v1.CodesService/GetCode', '*', 'a:1', 'http://a/b'];
  const more = ['', 'Upgrade: h2c\r\nConnection: upgrade, http2-settings\r\nHTTP2-Settings: AAMAAABk\r\n'];
  more.push(
    'Upgrade: websocket\r\nConnection: upgrade\r\n',
    'Expect: 100-continue\r\nContent-Length: 3\r\n',
    'Expect: x\r\n',
  );
  const requests = [...METHODS, 'PRI', 'NONE', 'get'].flatMap((method) =>
    targets.flatMap((target) =>
      more.map((headers) => `${method} ${target} HTTP/1.1\r\nHost: a.example\r\n${headers}\r\n`),
    ),
  );
  await forEach(requests, async (request) => {
    for (const status of statusesIn(await exchange(request))) expect(status, request).toBeLessThan(500);
  });
  await forEach(requests, reset);
});

test('every split point of calls over HTTP/1.1', async () => {
  const { answersTo } = raw.corePort;
  const both = (received: Buffer) => statusesIn(received).length === 2;
  await forEach(placesIn(HTTP1), async (at) => {
    const answers = await answersTo([HTTP1.slice(0, at), HTTP1.slice(at)], both);
    expect(statusesIn(answers), String(at)).toEqual([200, 401]);
  });
});

test('a thousand requests at once on an HTTP/1.1 connection close it', async () => {
  const { exchange } = raw.corePort;
  const statuses = statusesIn(await exchange(CHECK.repeat(1_000)));
  expect(statuses.length).toBeLessThanOrEqual(10);
});

describe.each(PORTS)('%s', (port) => {
  const { exchange, answersTo, reset, open } = raw[port];

  test('every split point of calls over HTTP/2', async () => {
    const both = (received: Buffer) => servingIn(received).length === 2;
    await forEach(placesIn(HTTP2), async (at) => {
      const answers = await answersTo([HTTP2.subarray(0, at), HTTP2.subarray(at)], both);
      expect(servingIn(answers).toSorted(), String(at)).toEqual([1, 3]);
    });
  });

  test('a half-close and a reset after every byte', async () => {
    await forEach(placesIn(HTTP2), async (at) => void (await exchange(HTTP2.subarray(0, at))));
    await forEach(placesIn(HTTP2), (at) => reset(HTTP2.subarray(0, at)));
    await forEach(placesIn(HTTP1), async (at) => void (await exchange(HTTP1.slice(0, at))));
    await forEach(placesIn(HTTP1), (at) => reset(HTTP1.slice(0, at)));
  });

  test('any bytes, before, behind and in the middle of calls', async () => {
    const garbage = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes));
    const calls = [opening(), healthCheck(1), HTTP2, HTTP2.subarray(0, 40), Buffer.from(HTTP1), Buffer.from('PRI')];
    const piece = fc.oneof(garbage, fc.constantFrom(...calls));
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { minLength: 1, maxLength: 4 }), fc.boolean(), async (pieces, resets) => {
        if (resets) return reset(Buffer.concat(pieces));
        for (const status of statusesIn(await exchange(...pieces))) expect(status).toBeLessThan(500);
      }),
      { numRuns: 300, interruptAfterTimeLimit: 5_000, markInterruptAsFailure: false },
    );
  });

  test('hundreds of idle and slow connections delay no one else', async () => {
    const idle = Array.from({ length: 300 }, open);
    const slow = Array.from({ length: 300 }, open);
    let sent = 0;
    const sending = setInterval(() => {
      for (const socket of slow) socket.write(HTTP2.subarray(sent, sent + 1));
      sent++;
    }, 50);
    const sockets = async () => (await figures()).sockets;
    await expect.poll(sockets).toBeGreaterThanOrEqual(600);
    for (let n = 0; n < 10; n++) await goesOn();
    clearInterval(sending);
    for (const socket of [...idle, ...slow]) socket.destroy();
  });
});
