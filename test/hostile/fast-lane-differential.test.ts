import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import { limitAttempts } from '../../gateway/http/address-limits.ts';
import { createHttpServer } from '../../gateway/http-server.ts';
import { openFastLane } from '../../gateway/redirect/answer/fast-lane.ts';
import { createScanHandler, type ScanHandler } from '../../gateway/redirect/answer/scan-handler.ts';
import { openRouteTable, type RouteTable } from '../../gateway/redirect/routes/route-table.ts';
import { lookUpUnknownCodes, type UnknownCodes } from '../../gateway/redirect/routes/unknown-codes.ts';
import { openSpool, type Spool } from '../../gateway/redirect/spool/spool.ts';
import { Answer, RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { freshDatabase } from '../harness/database.ts';

/**
 * The gateway's HTTP front end twice: with the fast lane, and with Node's HTTP server alone. Whatever bytes arrive, in
 * whatever pieces, both give the same answers and count the same scans. fast-check prints the seed of a failure.
 */
interface Front {
  readonly server: Server;
  readonly scans: ScanHandler;
  readonly spool: Spool;
}

const HOSTS = { custom: 'go.example.com', platform: 'signpost.example' };
const ACTIVE = ['Ab3dE9k', 'Ab3dE9m'];

const logger = pino({ level: 'silent' });
const folder = mkdtempSync(join(tmpdir(), 'signpost-differential-'));
let table: RouteTable;
let unknown: UnknownCodes;
let fast: Front;
let standard: Front;

beforeAll(async () => {
  table = openRouteTable(join(folder, 'routes'), logger);
  unknown = lookUpUnknownCodes((await freshDatabase()).url, limitAttempts(1_000_000), () => {}, logger);
  const accountId = encodeId('acct', newUuid());
  const code = (shortCode: string, answer: Answer, hostname = '') =>
    table.apply(
      create(RouteSchema, {
        version: 1n,
        entry: {
          case: 'code',
          value: {
            ...{ shortCode, answer, hostname, accountId, codeId: encodeId('qr', newUuid()) },
            targetUrl: answer === Answer.REDIRECT ? `https://example.com/${shortCode}` : '',
          },
        },
      }),
    );
  for (const shortCode of ACTIVE) await code(shortCode, Answer.REDIRECT);
  await code('Ab3dE9n', Answer.REDIRECT, HOSTS.custom);
  await code('Ab3dE9p', Answer.PAUSED);
  await code('Ab3dE9q', Answer.GONE);
  await table.apply(
    create(RouteSchema, {
      version: 1n,
      entry: { case: 'host', value: { hostname: HOSTS.custom, accountId, removed: false } },
    }),
  );
  fast = await startFront('fast');
  openFastLane(fast.server, fast.scans, undefined, () => {});
  standard = await startFront('standard');
});

afterAll(async () => {
  for (const { server } of [fast, standard]) server.close();
  await Promise.all([fast, standard].map(({ spool }) => spool.close(0)));
  await Promise.all([unknown.close(), table.close()]);
  rmSync(folder, { recursive: true });
});

async function startFront(name: string): Promise<Front> {
  const spool = openSpool({ folder: join(folder, name), logger, offer: () => {} });
  const scans = createScanHandler({
    table,
    unknown,
    spool,
    trustedProxies: [],
    countryHeader: undefined,
    countryOf: () => 'unknown',
    saltAt: () => '5a'.repeat(32),
    logger,
  });
  const api = { handle: echo };
  const server = createHttpServer({
    scans,
    table,
    api,
    ready: () => {},
    coreTimeoutMs: 1_000,
    admit: () => true,
    countRefusal: () => {},
    isStopping: () => false,
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, scans, spool };
}

/** Replaces the REST API: echoes the request, a moment after it has arrived completely. */
async function echo(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks = await request.toArray().catch(() => undefined);
  if (!chunks) return;
  await turn();
  const body = JSON.stringify([request.method, request.url, request.headers.host, Buffer.concat(chunks).toString()]);
  response.writeHead(200, { 'content-length': Buffer.byteLength(body) }).end(body);
}

/** Sends the pieces, half-closes, and returns everything received. */
function exchange({ server }: Front, pieces: readonly string[]): Promise<string> {
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve, reject) => {
    let received = '';
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true }, async () => {
      for (const piece of pieces) {
        if (!socket.writable) break;
        socket.write(piece, 'latin1');
        await turn();
        await turn();
      }
      socket.end();
    });
    socket.setEncoding('latin1').on('data', (text: string) => {
      received += text;
    });
    socket.on('end', () => socket.end());
    socket.setTimeout(20_000, () => reject(new Error(`no end after ${JSON.stringify(received)}`)));
    // The server may close while the client is still sending.
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(received));
  });
}

/** Headers about the connection, or that differ each time. */
const OWN = /^(date|connection|keep-alive|x-request-id):/;

/** The answers in comparable form. */
function answersIn(text: string): unknown[] {
  return text
    .split(/(?=HTTP\/1\.1 \d\d\d )/)
    .filter((each) => each !== '' && !each.startsWith('HTTP/1.1 100 '))
    .map((each) => {
      const end = each.indexOf('\r\n\r\n');
      const [status, ...headers] = each.slice(0, end).split('\r\n');
      const names = headers.map((line) => line.replace(/^[^:]*/, (name) => name.toLowerCase()));
      return { status, headers: names.filter((line) => !OWN.test(line)).sort(), body: each.slice(end + 4) };
    });
}

async function expectSame(pieces: readonly string[]): Promise<unknown[]> {
  const before = [fast, standard].map(({ scans }) => scans.answered());
  const [one, other] = await Promise.all([exchange(fast, pieces), exchange(standard, pieces)]);
  expect(answersIn(one)).toEqual(answersIn(other));
  const [byFast, byStandard] = [fast, standard].map(({ scans }, index) => scans.answered() - (before[index] ?? 0));
  expect(byFast).toBe(byStandard);
  return answersIn(one);
}

/** Mostly well formed, so that pipelines get far. */
function often<Value>(usual: Value, ...others: Value[]): fc.Arbitrary<Value> {
  return fc.oneof({ weight: 6, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...others) });
}

const scanPath = fc.oneof(
  fc.constantFrom('/r/Ab3dE9k', '/r/Ab3dE9m/', '/r/Ab3dE9n', '/r/Ab3dE9p?utm_source=a', '/r/Ab3dE9q', '/r/Ab3dE9z'),
  fc.constantFrom('/r/', '/r/a/b', '/r/%41', '/r/Ab3dE9k#b', '/R/Ab3dE9k', '/r/Ab3dE9k?a b', '/r/abc', '//r/Ab3dE9k'),
);
const otherPath = fc.constantFrom('/api/v1/qr-codes', '/', '*', 'x', '/healthz', '/tls/ask?domain=a', 'ftp://a/', '');
const target = fc.oneof(
  { weight: 6, arbitrary: scanPath },
  { weight: 2, arbitrary: otherPath },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        fc.constantFrom('signpost.example', HOSTS.custom, `${HOSTS.custom}:`, 'a:80', '', 'u@a', '[::1]:80', '[::'),
        scanPath,
      )
      .map(([host, path]) => `http://${host}${path}`),
  },
);
const hosts = often<readonly string[]>(
  [HOSTS.platform],
  ...[
    [HOSTS.custom],
    [`${HOSTS.custom}.:`],
    [],
    [''],
    [HOSTS.platform, HOSTS.platform],
    ['a b'],
    ['a/b'],
    ['[::1]:8080'],
    ['[1]'],
    ['é'],
  ],
);
const header = fc.oneof(
  fc.constantFrom('user-agent: a phone', 'accept-language: de', 'connection: keep-alive', 'x-request-id: mine'),
  fc.constantFrom('connection: close', 'content-length: 0', 'upgrade: websocket', 'te: x'),
  fc.constantFrom('expect: x', 'x : y', ' folded', 'no colon', 'x: \u0001', 'x: é', 'x:', ': y', 'content-length: x'),
  fc.string({ maxLength: 20 }).map((value) => `x: ${value}`),
);
const body = fc.oneof(
  { weight: 8, arbitrary: fc.constant('') },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      'content-length: 5\r\n\r\nhello',
      'transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
    ),
  },
);
const request = fc
  .record({
    method: fc.oneof(
      { weight: 4, arbitrary: fc.constant('GET') },
      fc.constantFrom('HEAD', 'POST', 'OPTIONS', 'CONNECT', 'TRACE', 'PRI', 'get', 'NONE'),
    ),
    target,
    version: often('HTTP/1.1', 'HTTP/1.0', 'HTTP/2.0', 'HTTP/1.2', 'ICY'),
    hosts,
    headers: fc.array(header, { maxLength: 3 }),
    body,
    newline: often('\r\n', '\n'),
  })
  .map(({ method, target, version, hosts, headers, body, newline }) => {
    const lines = [`${method} ${target} ${version}`, ...hosts.map((host) => `Host: ${host}`), ...headers];
    return lines.join(newline) + newline + (body === '' ? newline : body);
  });
/** Only to endpoints that read the body: elsewhere either the endpoint or the parser's 400 answers first. */
const truncated = fc
  .constantFrom('transfer-encoding: chunked\r\n\r\nz\r\n', 'content-length: 5\r\n\r\nhel')
  .map((rest) => `POST /api HTTP/1.1\r\nhost: ${HOSTS.platform}\r\n${rest}`);
const scan = fc
  .tuple(scanPath, often('', 'connection: close\r\n', 'Connection: Keep-Alive\r\n'))
  .map(([path, connection]) => `GET ${path} HTTP/1.1\r\nhost: ${HOSTS.platform}\r\n${connection}\r\n`);
const garbage = fc.constantFrom(
  'garbage\r\n\r\n',
  '\0\0\0\0',
  '\r\n',
  '\r\n\r\n',
  'GET',
  '\x16\x03\x01\x02\x00\x01\xfc',
);
const message = fc.oneof(
  { weight: 4, arbitrary: scan },
  { weight: 4, arbitrary: request },
  { weight: 1, arbitrary: garbage },
  { weight: 1, arbitrary: truncated },
);

/** Cuts text at some positions. */
function cutAt(text: string, places: readonly number[]): string[] {
  const ends = [...new Set(places.map((place) => Math.floor(place * text.length)))].sort((one, other) => one - other);
  return [...ends, text.length].map((end, index) => text.slice(ends[index - 1] ?? 0, end)).filter(Boolean);
}

test('pipelines of any requests, cut anywhere and ended by a half-close, are answered as by Node’s server alone', async () => {
  let answered = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(message, { minLength: 1, maxLength: 5 }),
      fc.array(fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), { maxLength: 4 }),
      async (messages, places) => {
        answered += (await expectSame(cutAt(messages.join(''), places))).length;
      },
    ),
    { numRuns: 1_000, interruptAfterTimeLimit: 40_000, markInterruptAsFailure: false },
  );
  // Otherwise the test would prove nothing.
  expect(answered).toBeGreaterThan(500);
});

describe('every request before a half-close is answered, in order, wherever the bytes are split:', () => {
  const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: a.example\r\n\r\n`;
  const post = 'POST /api HTTP/1.1\r\nhost: a.example\r\ncontent-length: 5\r\n\r\nhello';
  const last = (path: string) => `GET ${path} HTTP/1.1\r\nhost: a.example\r\nconnection: close\r\n\r\n`;
  const [found, missing, posted, refused] = ['302', '404', '200', '400'];

  test.each([
    ['a scan', get('/r/Ab3dE9k'), [found]],
    ['scans and others', get('/r/Ab3dE9k') + post + get('/r/Ab3dE9m'), [found, posted, found]],
    ['a look-up, then others', get('/r/Ab3dE9y') + post + get('/r/Ab3dE9k'), [missing, posted, found]],
    ['a request that is not whole', `${get('/r/Ab3dE9k')}GET /r/`, [found, refused]],
    ['a scan followed by garbage', `${get('/r/Ab3dE9k')}garbage\r\n\r\n`, [found, refused]],
    ['a look-up followed by garbage', `${get('/r/Ab3dE9x')}garbage\r\n\r\n`, [missing, refused]],
    ['a POST followed by garbage', `${post}garbage\r\n\r\n`, [posted, refused]],
    ['a POST followed by CONNECT', `${post}CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n`, [posted, refused]],
    ['a last scan', last('/r/Ab3dE9k'), [found]],
    ['scans, and a look-up as the last', get('/r/Ab3dE9k') + last('/r/Ab3dE9w'), [found, missing]],
    ['a POST, then a last scan', post + last('/r/Ab3dE9k'), [posted, found]],
    ['a POST whose body breaks off', `${post}${post.slice(0, -2)}`, [posted, refused]],
  ])(
    '%s',
    async (_, text, statuses) => {
      for (let at = 1; at < text.length; at += 3) {
        const answers = (await expectSame([text.slice(0, at), text.slice(at)])) as { status: string }[];
        expect(answers.map(({ status }) => status.split(' ')[1])).toEqual(statuses);
      }
    },
    60_000,
  );

  test.each([last('/r/Ab3dE9k'), last('/r/Ab3dE9v')])(
    'what follows a last request is not carried out: %j',
    async (text) => {
      const whole = text + get('/r/Ab3dE9k');
      for (let at = 1; at < whole.length; at++) {
        const before = [fast, standard].map(({ scans }) => scans.answered());
        const pieces = [whole.slice(0, at), whole.slice(at)];
        const answers = await Promise.all(
          [fast, standard].map(async (front) => answersIn(await exchange(front, pieces))),
        );
        // Node may answer with a 400 if the bytes arrive soon enough.
        for (const [{ status } = {}, ...others] of answers as { status?: string }[][]) {
          expect(status).toMatch(text.includes('Ab3dE9k') ? /302/ : /404/);
          for (const other of others) expect(other.status).toMatch(/400/);
        }
        const scans = [fast, standard].map((front, index) => front.scans.answered() - (before[index] ?? 0));
        expect(scans).toEqual(text.includes('Ab3dE9k') ? [1, 1] : [0, 0]);
      }
    },
    60_000,
  );
});

test('an answer without 100 Continue, because others are due before it, is complete', async () => {
  const page = 'GET /r/abc HTTP/1.1\r\nhost: a.example\r\nexpect: 100-continue\r\n\r\n';
  const scan = 'GET /r/Ab3dE9k HTTP/1.1\r\nhost: a.example\r\n\r\n';
  const [, answer] = (await expectSame([scan + page])) as { status: string; body: string }[];
  expect(answer).toMatchObject({ status: 'HTTP/1.1 404 Not Found', body: expect.stringMatching(/^<!doctype html>/) });
});

describe('the host:', () => {
  const statusOf = async (text: string) => {
    const [answer] = (await expectSame([text])) as { status: string; headers: string[] }[];
    return [answer?.status.split(' ')[1], answer?.headers.find((line) => line.startsWith('location:'))];
  };

  test.each(['', 'a b', 'a/b', 'a@b', 'a:b', '[::1', '[1::2::3]', 'a\\b', 'a%zz', 'é'])(
    'a Host that is invalid is a 400: %j',
    async (host) => {
      expect(await statusOf(`GET /r/Ab3dE9k HTTP/1.1\r\nhost: ${host}\r\n\r\n`)).toEqual(['400', undefined]);
      expect(await statusOf(`GET /api HTTP/1.1\r\nhost: ${host}\r\n\r\n`)).toEqual(['400', undefined]);
    },
  );

  test('a Host that is repeated or missing is a 400, wherever it is in the pipeline', async () => {
    const many = 'x: y\r\n'.repeat(2_100);
    for (const path of ['/r/Ab3dE9k', '/api']) {
      const hosts = [`host: a\r\nhost: a\r\n`, '', `host: a\r\n${many}Host: b\r\n`];
      for (const host of hosts) {
        expect(await statusOf(`GET ${path} HTTP/1.1\r\n${host}\r\n`)).toEqual(['400', undefined]);
      }
    }
  });

  test('a scan may have any number of headers up to 16 KiB', async () => {
    const many = 'x:\r\n'.repeat(3_000);
    const found = ['302', 'location: https://example.com/Ab3dE9k'];
    expect(await statusOf(`GET /r/Ab3dE9k HTTP/1.1\r\nhost: a\r\n${many}\r\n`)).toEqual(found);
  });

  test.each(['go.example.com:', 'go.example.com..', '%67o.example.com', 'GO.example.com.:0'])(
    'a custom domain serves only its own codes, however it is spelled: %s',
    async (host) => {
      const scanOn = (target: string, header: string) => statusOf(`GET ${target} HTTP/1.1\r\nhost: ${header}\r\n\r\n`);
      expect(await scanOn('/r/Ab3dE9k', host)).toEqual(['404', undefined]);
      expect(await scanOn(`http://${host}/r/Ab3dE9k`, HOSTS.platform)).toEqual(['404', undefined]);
      expect((await scanOn('/r/Ab3dE9n', host))[0]).toBe('302');
      expect((await scanOn('/api', host))[0]).toBe('404');
    },
  );

  test('the host of an absolute target wins over Host', async () => {
    const scanOn = (target: string, host: string) => statusOf(`GET ${target} HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
    const found = ['302', 'location: https://example.com/Ab3dE9n'];
    const { custom, platform } = HOSTS;
    expect(await scanOn(`http://${custom}/r/Ab3dE9n`, platform)).toEqual(found);
    expect(await scanOn(`HTTPS://${custom}:8443/r/Ab3dE9n?a`, platform)).toEqual(found);
    // A custom domain serves only its own codes.
    expect(await scanOn(`http://${custom}/r/Ab3dE9k`, platform)).toEqual(['404', undefined]);
    expect((await scanOn(`http://${platform}/r/Ab3dE9k`, custom))[0]).toBe('302');
    expect(await scanOn(`http://${platform}/r/Ab3dE9k`, '')).toEqual(['400', undefined]);
    expect(await scanOn('http://user@signpost.example/r/Ab3dE9k', platform)).toEqual(['400', undefined]);
  });
});
