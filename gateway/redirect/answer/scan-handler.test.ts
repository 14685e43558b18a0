import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, createServer, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create, fromBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openCountries } from '../../../common/contract/countries.ts';
import { encodeId, newUuid } from '../../../common/contract/ids.ts';
import { visitorOf } from '../../../common/contract/visitor.ts';
import { policyOf } from '../../../common/targets/policy.fixture.ts';
import { Answer, RouteSchema } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { type Scan, ScanSchema } from '../../../proto/gen/signpost/scans/v1/scan_pb.ts';
import { newShortCode } from '../../../src/codes/create/short-code.ts';
import { freshDatabase } from '../../../test/harness/database.ts';
import { insertAccount } from '../../../test/harness/insert-account.ts';
import { limitAttempts } from '../../http/address-limits.ts';
import { openRouteTable, type RouteTable } from '../routes/route-table.ts';
import { lookUpUnknownCodes, type UnknownCodes } from '../routes/unknown-codes.ts';
import { readSpool, type SpoolReader } from '../spool/read-spool.ts';
import { openSpool, type Spool } from '../spool/spool.ts';
import { openFastLane } from './fast-lane.ts';
import { httpLane } from './http-lane.ts';
import { createScanHandler } from './scan-handler.ts';

const logger = pino({ level: 'silent' });
const folder = mkdtempSync(join(tmpdir(), 'signpost-scans-'));
const accountId = newUuid();
/** The limit of unknown codes for each address in a minute. */
const MAX_UNKNOWN = 20;
const SALT = '5a'.repeat(32);
const TARGET = 'https://example.com/menu?table=4&lang=de#today';

let database: pg.Pool;
let table: RouteTable;
let spool: Spool;
let spooled: SpoolReader;
let unknown: UnknownCodes;
const [fast, standard] = [createServer(), createServer()];
const agent = new Agent({ keepAlive: true });
/** The server under test. */
let server = fast;
/** The look-up of unknown codes that the handler uses: Postgres, unless a test replaces it. */
let lookUp: UnknownCodes;

beforeAll(async () => {
  const { url } = await freshDatabase();
  database = new pg.Pool({ connectionString: url, max: 1 });
  await insertAccount(database, { id: accountId });
  table = openRouteTable(join(folder, 'routes'), logger);
  spool = openSpool({ folder: join(folder, 'spool'), logger, offer: () => {} });
  spooled = readSpool(join(folder, 'spool'), logger);
  unknown = lookUpUnknownCodes(url, limitAttempts(MAX_UNKNOWN), () => {}, logger);
  lookUp = unknown;
  const scans = createScanHandler({
    table,
    spool,
    unknown: { find: (shortCode, address) => lookUp.find(shortCode, address), close: async () => {} },
    trustedProxies: ['127.0.0.0/8'],
    countryHeader: 'CF-IPCountry',
    countryOf: await openCountries(),
    saltAt: () => SALT,
    logger,
  });
  const lane = httpLane(scans);
  for (const server of [fast, standard]) {
    server.on('request', (request, response) => {
      if (lane.matches(request)) lane.handle(request, response);
      else response.writeHead(404).end('the rest of the gateway');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  }
  openFastLane(fast, scans, 'CF-IPCountry', () => {});
});

afterAll(async () => {
  for (const server of [fast, standard]) server.close();
  agent.destroy();
  await spool.close(0);
  await Promise.all([unknown.close(), table.close(), database.end()]);
  rmSync(folder, { recursive: true });
});

beforeEach(() => {
  recorded();
  lookUp = unknown;
});

interface Received {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Sends a request unmodified, without the headers that `fetch` adds or forbids. */
function send(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Received> {
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve, reject) => {
    const request = httpRequest({ agent, port, host: '127.0.0.1', path, method, headers }, async (response) => {
      const body = Buffer.concat(await response.toArray()).toString();
      resolve({ status: response.statusCode, headers: response.headers, body });
    });
    request.once('error', reject).end();
  });
}

/** Creates a code in Postgres that is not in any route table. */
async function code(columns: Record<string, unknown> = {}): Promise<{ id: string; path: string }> {
  const id = newUuid();
  const shortCode = newShortCode();
  const row = { id, account_id: accountId, type: 'dynamic', short_code: shortCode, target_url: TARGET, ...columns };
  const names = Object.keys(row);
  await database.query(
    `insert into codes (${names.join(', ')}) values (${names.map((_, index) => `$${index + 1}`).join(', ')})`,
    Object.values(row),
  );
  return { id: encodeId('qr', id), path: `/r/${shortCode}` };
}

/** The scans that were recorded since the last call. */
function recorded(): Scan[] {
  const scans: Scan[] = [];
  for (let batch = spooled.next(); batch; batch = spooled.next()) {
    scans.push(...batch.payloads.map((payload) => fromBinary(ScanSchema, payload)));
    batch.forget();
  }
  return scans;
}

describe.each([
  ['the fast lane', fast],
  ['Node’s server', standard],
])('through %s:', (_, tested) => {
  beforeAll(() => {
    server = tested;
  });

  describe('an active dynamic code', () => {
    test('is a 302 to its target, not cacheable, without a body', async () => {
      const { path } = await code();
      const answer = await send(path);
      expect(answer).toMatchObject({ status: 302, body: '' });
      expect(answer.headers).toMatchObject({ location: TARGET, 'cache-control': 'no-store', 'content-length': '0' });
      expect(recorded()).toHaveLength(1);
    });

    test('is looked up in Postgres once, and then resolves without it', async () => {
      const { path } = await code();
      await send(path);
      lookUp = { find: () => Promise.reject(new Error('unavailable')), close: async () => {} };
      expect((await send(path)).status).toBe(302);
    });

    test('redirects to the ASCII form of a target with other characters', async () => {
      const { path } = await code({ target_url: 'https://bücher.example/straße?ort=Köln' });
      expect((await send(path)).headers.location).toBe('https://xn--bcher-kva.example/stra%C3%9Fe?ort=K%C3%B6ln');
    });

    test('HEAD resolves without counting', async () => {
      const { path } = await code();
      expect(await send(path, {}, 'HEAD')).toMatchObject({ status: 302, headers: { location: TARGET } });
      expect(recorded()).toEqual([]);
    });

    test('a query in the scan URL changes nothing', async () => {
      const { path } = await code();
      expect((await send(`${path}?utm_source=poster`)).headers.location).toBe(TARGET);
    });
  });

  describe('an active dynamic code with a policy', () => {
    const PHONE =
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile/15E148 Safari/604.1';

    /** Creates a code whose policy, in JSON, is version 3 of its target. */
    async function codeWithPolicy(json: unknown, columns: Record<string, unknown> = {}): Promise<string> {
      const { id, path } = await code(columns);
      await setPolicy(id, path, json, 5n);
      return path;
    }

    async function setPolicy(id: string, path: string, json: unknown, version: bigint): Promise<void> {
      const value = {
        shortCode: path.slice('/r/'.length),
        codeId: id,
        accountId: encodeId('acct', accountId),
        answer: Answer.REDIRECT,
        targetUrl: TARGET,
        policy: policyOf(json),
        targetVersion: 3,
      };
      await table.apply(create(RouteSchema, { version, entry: { case: 'code', value } }));
    }

    test('leads to what its first fitting rule says, which the scan records', async () => {
      const path = await codeWithPolicy({
        rules: [
          { when: { until: '2020-01-01T00:00:00Z' }, then: { page: 'gone' } },
          { when: { languages: ['fr'] }, then: { target_url: 'https://example.com/fr' } },
          {
            when: { devices: ['mobile'], operating_systems: ['ios'] },
            then: { target_url: 'https://example.com/ios' },
          },
          { when: { countries: ['DE'] }, then: { page: 'paused' } },
        ],
      });
      const locationFor = async (headers: Record<string, string>) => (await send(path, headers)).headers.location;
      expect(await locationFor({ 'accept-language': 'fr-CA,en;q=0.8' })).toBe('https://example.com/fr');
      expect(await locationFor({ 'accept-language': 'en,fr;q=0.8' })).toBe(TARGET);
      expect(await locationFor({ 'user-agent': PHONE })).toBe('https://example.com/ios');
      const paused = await send(path, { 'cf-ipcountry': 'DE' });
      expect(paused.status).toBe(200);
      expect(paused.body).toContain('This code is paused');
      expect(recorded().map(({ targetVersion, targetRule }) => [targetVersion, targetRule])).toEqual([
        [3, 2],
        [3, 0],
        [3, 3],
        [3, 4],
      ]);
    });

    test('HEAD leads to the same, without counting', async () => {
      const path = await codeWithPolicy({ rules: [{ then: { page: 'gone' } }] });
      expect((await send(path, {}, 'HEAD')).status).toBe(410);
      expect(recorded()).toEqual([]);
      // The code is active, so that its scans count.
      expect((await send(path)).status).toBe(410);
      expect(recorded()).toHaveLength(1);
    });

    test('a visitor keeps the variant of a split, which the scan records', async () => {
      const split = ['a', 'b'].map((label) => ({ label, weight: 1, target_url: `https://example.com/${label}` }));
      const path = await codeWithPolicy({ rules: [{ then: { split } }] });
      const chosen = new Set<string>();
      for (let visitor = 0; visitor < 30; visitor++) {
        const headers = { 'user-agent': `visitor ${visitor}` };
        const { location } = (await send(path, headers)).headers;
        expect((await send(path, headers)).headers.location).toBe(location);
        const [first, second] = recorded();
        expect(location).toBe(`https://example.com/${first?.targetVariant}`);
        expect(second?.targetVariant).toBe(first?.targetVariant);
        chosen.add(first?.targetVariant ?? '');
      }
      expect([...chosen].sort()).toEqual(['a', 'b']);
    });

    test('a policy is replaced by one with the same version, as after a restore of Postgres', async () => {
      const { id, path } = await code();
      for (const [version, location] of [
        [5n, 'https://example.com/before'],
        [6n, 'https://example.com/after'],
      ] as const) {
        await setPolicy(id, path, { rules: [{ then: { target_url: location } }] }, version);
        expect((await send(path)).headers.location).toBe(location);
      }
    });

    test('parameters and the query of the scan URL are added', async () => {
      const path = await codeWithPolicy({ pass_query: true, parameters: { utm_source: 'print', table: '9' } });
      const { location } = (await send(`${path}?utm_source=scan&x=%20y&lang=fr`)).headers;
      expect(location).toBe('https://example.com/menu?table=4&lang=de&utm_source=print&x=%20y#today');
      const { location: long } = (await send(`${path}?x=${'y'.repeat(9_000)}`)).headers;
      expect(long).toBe('https://example.com/menu?table=4&lang=de&utm_source=print#today');
      // A query that is too long by itself is not read, even if most of it would not be passed on.
      const { location: repeated } = (await send(`${path}?${'lang=fr&'.repeat(1_100)}x=1`)).headers;
      expect(repeated).toBe(long);
    });

    test('a policy that this gateway can’t evaluate leads to the target', async () => {
      const weekly = { time_zone: 'Mars/Olympus', days: ['mon'], from: '00:00', until: '00:00' };
      const path = await codeWithPolicy({ rules: [{ when: { weekly }, then: { page: 'gone' } }] });
      expect((await send(path)).headers.location).toBe(TARGET);
      expect(recorded()).toHaveLength(1);
    });
  });

  describe('every other code', () => {
    const landing = {
      title: 'The <menu>',
      text: 'Open today',
      links: [{ label: 'Order', url: 'https://example.com/' }],
    };

    test.each([
      [
        'an active landing page',
        { type: 'landing_page', target_url: null, landing_page: landing },
        200,
        'The &lt;menu&gt;',
        1,
      ],
      ['a paused code', { paused: true }, 200, 'This code is paused', 1],
      ['a paused landing page', { type: 'landing_page', landing_page: landing, paused: true }, 200, 'paused', 1],
      ['a deleted code', { deleted_at: new Date() }, 410, 'This code is no longer active', 0],
      ['a static code', { type: 'static', target_url: null, payload: 'text' }, 404, 'There is nothing here', 0],
    ])('%s', async (_, columns, status, text, scans) => {
      const { path } = await code(columns);
      const answer = await send(path);
      expect(answer.status).toBe(status);
      expect(answer.body).toContain(text);
      expect(answer.headers).toMatchObject({ 'cache-control': 'no-store', 'x-robots-tag': 'noindex' });
      expect(recorded()).toHaveLength(scans);

      const head = await send(path, {}, 'HEAD');
      expect(head).toMatchObject({ status, body: '', headers: { 'content-length': answer.headers['content-length'] } });
      expect(recorded()).toEqual([]);
    });

    test.each(['/r/zzzzzzz', '/r/', '/r/abc', '/r/abcdefg/more', '/r/%00', `/r/${'a'.repeat(8_000)}`])(
      'an unknown one is a 404 with a page: %s',
      async (path) => {
        const answer = await send(path, { 'accept-language': 'de' });
        expect(answer).toMatchObject({ status: 404, headers: { 'content-language': 'de' } });
        expect(answer.body).toContain('Hier ist nichts');
        expect(recorded()).toEqual([]);
      },
    );
  });

  test('a code that cannot be looked up is a 503 with Retry-After, and resolves as soon as Postgres is available', async () => {
    const { path } = await code();
    const unavailable = lookUpUnknownCodes('postgres://nobody@127.0.0.1:1/nothing', limitAttempts(1), () => {}, logger);
    lookUp = unavailable;
    const answer = await send(path);
    expect(answer).toMatchObject({ status: 503, headers: { 'cache-control': 'no-store' } });
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    lookUp = unknown;
    expect((await send(path)).status).toBe(302);
    await unavailable.close();
  });

  describe('codes that do not exist are limited by client address:', () => {
    const unknownBy = async (address: string) => {
      const headers = { 'x-forwarded-for': address };
      const answers = [];
      for (let n = 0; n < MAX_UNKNOWN + 5; n++) answers.push(await send(`/r/${newShortCode()}`, headers));
      return answers.map(({ status }) => status);
    };
    const expected = [...Array(MAX_UNKNOWN).fill(404), ...Array(5).fill(429)];
    // A separate subnet for each lane, because the limit applies for a minute.
    const subnet = () => (server === fast ? '198.51.100' : '203.0.113');

    test('an address over the limit gets a 429 with Retry-After, and others do not', async () => {
      expect(await unknownBy(`${subnet()}.1`)).toEqual(expected);
      const answer = await send(`/r/${newShortCode()}`, { 'x-forwarded-for': `${subnet()}.1` });
      expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
      expect(answer.body).toContain('Just a moment');
      expect((await send(`/r/${newShortCode()}`, { 'x-forwarded-for': `${subnet()}.2` })).status).toBe(404);
    });

    test('for such an address known codes still resolve, and for others new codes do too', async () => {
      const [known, fresh] = [await code(), await code()];
      const address = `${subnet()}.3`;
      await send(known.path);
      await unknownBy(address);
      expect((await send(known.path, { 'x-forwarded-for': address })).status).toBe(302);
      expect((await send(fresh.path, { 'x-forwarded-for': address })).status).toBe(429);
      expect((await send(fresh.path, { 'x-forwarded-for': `${subnet()}.4` })).status).toBe(302);
    });

    test('text that is not a short code is not counted and never reaches Postgres', async () => {
      lookUp = lookUpUnknownCodes('postgres://nobody@127.0.0.1:1/nothing', limitAttempts(1), () => {}, logger);
      for (const text of ['abc', 'Ab0dE9k', 'Ab3dE9O', 'Ab3dE9l', 'Ab3dE9kk', 'a'.repeat(32)]) {
        expect((await send(`/r/${text}`)).status).toBe(404);
      }
      await lookUp.close();
    });
  });

  test('other methods are a 405 with Allow', async () => {
    const { path } = await code();
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      expect(await send(path, {}, method)).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
    }
    expect(recorded()).toEqual([]);
  });

  describe('hosts', () => {
    beforeAll(async () => {
      for (const hostname of ['go.example.com', 'other.example.com', 'removed.example.com']) {
        const value = { hostname, accountId: encodeId('acct', accountId), removed: hostname.startsWith('removed') };
        await table.apply(create(RouteSchema, { version: 1n, entry: { case: 'host', value } }));
      }
    });

    test('a custom domain serves the codes on it, and no others', async () => {
      const own = await code({ hostname: 'go.example.com' });
      const platform = await code();
      const host = 'Go.Example.com:8080';
      expect((await send(own.path, { host })).status).toBe(302);
      expect((await send(platform.path, { host })).status).toBe(404);
      expect((await send(own.path, { host: 'other.example.com' })).status).toBe(404);
      expect(recorded()).toMatchObject([{ codeId: own.id, host: 'go.example.com' }]);
    });

    test('a custom domain that was removed serves the codes on it, and no others', async () => {
      const host = 'removed.example.com';
      expect((await send((await code({ hostname: host })).path, { host })).status).toBe(302);
      expect((await send((await code()).path, { host })).status).toBe(404);
      expect(await send('/api/v1/qr-codes', { host })).toMatchObject({ status: 404 });
      expect((await send('/', { host })).body).toContain('There is nothing here');
    });

    test('every path on a custom domain is a scan', async () => {
      expect(await send('/api/v1/qr-codes', { host: 'go.example.com' })).toMatchObject({ status: 404 });
      expect((await send('/', { host: 'go.example.com' })).body).toContain('There is nothing here');
      expect((await send('/api/v1/qr-codes')).body).toBe('the rest of the gateway');
    });

    test('the platform host, and every host that is no custom domain, serves all codes', async () => {
      const { path } = await code({ hostname: 'go.example.com' });
      for (const host of ['localhost:8080', 'unheard-of.example', 'x'.repeat(5_000)]) {
        expect((await send(path, { host })).status).toBe(302);
      }
    });
  });

  test('a scan contains what the recorder needs, truncated to the limits', async () => {
    const { id, path } = await code();
    const before = Date.now();
    await send(path, {
      'user-agent': 'a'.repeat(2_000),
      referer: 'https://www.example.com/private?of=visitor',
      'accept-language': 'de',
      'sec-purpose': 'prefetch',
      'cf-ipcountry': 'de',
      'x-forwarded-for': '198.51.100.7',
      'x-forwarded-host': 'signpost.example',
    });
    const [scan, ...others] = recorded();
    expect(others).toEqual([]);
    expect(scan).toMatchObject({
      codeId: id,
      accountId: encodeId('acct', accountId),
      host: 'signpost.example',
      userAgent: 'a'.repeat(1_024),
      purpose: 'prefetch',
      country: 'DE',
      referrerHost: 'example.com',
    });
    expect(Buffer.from(scan?.visitor ?? []).toString('hex')).toBe(visitorOf(SALT, '198.51.100.7', 'a'.repeat(1_024)));
    expect(scan?.id).toHaveLength(16);
    const scannedAt = scan?.scannedAt ? timestampMs(scan.scannedAt) : 0;
    expect(scannedAt).toBeGreaterThanOrEqual(before);
    expect(scannedAt).toBeLessThanOrEqual(Date.now());
  });

  test('without a trusted proxy’s header, the country is determined from the address', async () => {
    const { path } = await code();
    await send(path, { 'x-forwarded-for': '194.25.0.60' });
    await send(path, { 'x-forwarded-for': '194.25.0.60', 'cf-ipcountry': 'XX' });
    await send(path, { 'x-forwarded-for': 'fe80::1%eth0' });
    expect(recorded().map(({ country }) => country)).toEqual(['DE', 'DE', '']);
  });

  test('every scan has an id of its own', async () => {
    const { path } = await code();
    await Promise.all(Array.from({ length: 30 }, () => send(path)));
    expect(new Set(recorded().map(({ id }) => Buffer.from(id).toString('hex'))).size).toBe(30);
  });

  test('every response has an X-Request-Id: the visitor’s own if they sent one', async () => {
    const { path } = await code();
    expect((await send(path, { 'x-request-id': 'mine' })).headers['x-request-id']).toBe('mine');
    for (const each of [path, '/r/zzzzzzz'])
      expect((await send(each)).headers['x-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  });
});
