import { writeFileSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import type { CodeJson } from '../../common/contract/code-json.ts';
import { openLog } from '../../common/log/open.ts';
import { SCANS, TOPICS } from '../../common/log/topics.ts';
import { DAY_MS, HOUR_MS } from '../../common/runtime/durations.ts';
import { type LocalPostgres, startPostgres } from '../../local/postgres.ts';
import { openDatabase } from '../../src/db/database.ts';
import { entities } from '../../src/entities.ts';
import { destroySalts, makeSalts } from '../../src/scans/recording/visitors.ts';
import { killWithChildren, scanUrl } from '../faults/visitors.ts';
import { afterFile } from '../harness/after-file.ts';
import { type Broker, startKafka } from '../harness/kafka.ts';
import { mmdbOf } from '../harness/mmdb.ts';
import { type Signpost, startSignpost } from '../harness/processes.ts';

/** Visitors, with addresses that occur nowhere else here. */
const [ANNA, BEN, CLEO] = ['203.0.113.77', '2001:db8:4d4d:5a5a:91b3:7ec5:9abc:def1', '198.51.100.213'] as const;
const PAGE = 'https://www.clinic.example/zq7path?patient=zq7query';
const LANGUAGE = 'de-zq7language';

/** A value that is stored and must be found wherever scans are: a search that finds nothing proves nothing. */
const AGENT = 'zq7agent/1';

/** What must not be found: addresses as text, digits and in both byte orders, and other identifying data. */
const SECRETS: Readonly<Record<string, Buffer>> = Object.fromEntries([
  ...[ANNA, BEN, CLEO, 'zq7path', 'zq7query', 'zq7language'].map((text) => [text, Buffer.from(text)]),
  ...['cb00714d', 'c63364d5', '20010db84d4d5a5a91b37ec59abcdef1'].flatMap((hex) => [
    [`the digits ${hex}`, Buffer.from(hex)],
    [`the bytes ${hex}`, Buffer.from(hex, 'hex')],
    [`the bytes ${hex}, reversed`, Buffer.from(hex, 'hex').reverse()],
  ]),
]);

const EVENTUALLY = { timeout: 60_000, interval: 200 };
const withKafka = inject('kafkaBrokers') !== null;

interface Analytics {
  readonly total_scans: number;
  readonly unique_scans: number;
  readonly breakdowns: Readonly<Record<'countries' | 'referrers', readonly object[]>>;
}

describe.each([...(withKafka ? ['Kafka'] : []), 'Postgres'])('with the log in %s,', (where) => {
  let folder: string;
  let postgres: LocalPostgres;
  let kafka: Broker | undefined;
  let signpost: Signpost;
  let apiKey: string;
  let code: CodeJson;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'signpost-privacy-'));
    afterFile(() => rm(folder, { recursive: true, force: true }));
    const countries = join(folder, 'countries.mmdb');
    writeFileSync(
      countries,
      mmdbOf({ '203.0.113.0/24': { country: { iso_code: 'PT' } }, '2001:db8::/32': { country: { iso_code: 'BR' } } }),
    );
    postgres = await startPostgres({ folder: join(folder, 'postgres') });
    afterFile(() => postgres.stop());
    if (where === 'Kafka') {
      const broker = await startKafka();
      kafka = broker;
      afterFile(() => broker.stop());
    }
    signpost = await startSignpost({
      databaseUrl: postgres.url,
      gatewayDatabaseUrl: postgres.gatewayUrl,
      ...(kafka && { kafkaBrokers: kafka.brokers }),
      env: { GATEWAY_WORKERS: '2', LOG_LEVEL: 'debug', TRUST_PROXY: '127.0.0.0/8', COUNTRY_DATABASE: countries },
    });
    ({ apiKey } = await signpost.createAccount());
    code = await api<CodeJson>('/qr-codes', { method: 'POST', body: '{"target_url":"https://example.com/"}' });
  }, 180_000);

  async function api<Data>(path: string, init: RequestInit = {}): Promise<Data> {
    const response = await fetch(`${signpost.url}/api/v1${path}`, {
      ...init,
      headers: { authorization: `Bearer ${apiKey}` },
    });
    expect(response.ok).toBe(true);
    return ((await response.json()) as { data: Data }).data;
  }

  const analytics = () => api<Analytics>(`/qr-codes/${code.id}/analytics`);
  const totalScans = async () => (await analytics()).total_scans;

  async function scan(...visitors: readonly string[]): Promise<void> {
    for (const visitor of visitors) expect(await statusFor(visitor, scanUrl(signpost, code))).toBe(302);
  }

  test('visitors are distinguished and located by their addresses', async () => {
    await scan(ANNA, BEN, ANNA, BEN, ANNA);
    await expect.poll(totalScans, EVENTUALLY).toBe(5);
    expect(await analytics()).toMatchObject({
      unique_scans: 2,
      breakdowns: {
        countries: [
          { country: 'PT', scans: 3 },
          { country: 'BR', scans: 2 },
        ],
        referrers: [{ referrer: 'clinic.example', scans: 5 }],
      },
    });
  });

  test('rejected requests are not logged with an address either', async () => {
    expect(await statusFor(ANNA, `${signpost.url}/r/zzzzzzz`)).toBe(404);
    expect(await statusFor(BEN, `${signpost.url}/r/${'z'.repeat(40)}`)).toBe(404);
    expect(await statusFor(ANNA, `${signpost.url}/api/v1/qr-codes`)).toBe(401);
  });

  test('a gateway that starts without Postgres counts visitors too high, never too low, until it can read the salt', async () => {
    const [core, gateway] = [signpost.cores[0], signpost.gateways[0]];
    if (!core || !gateway) throw new Error('they were started');
    const timesRead = async () => (await gateway.log()).split('today’s salt was read').length;
    const before = await timesRead();
    await killWithChildren(gateway);
    await core.kill();
    await postgres.stop();
    await kafka?.kill();
    await gateway.restart();
    await scan(ANNA, CLEO, ANNA, CLEO);
    await expectNoSecrets([join(signpost.dataDir, 'gateway-0', 'spool')], AGENT);

    postgres = await startPostgres({ folder: join(folder, 'postgres') });
    await kafka?.start();
    await core.restart();
    await expect.poll(async () => (await timesRead()) - before, EVENTUALLY).toBe(2);
    await scan(ANNA, BEN, CLEO);
    await expect.poll(totalScans, EVENTUALLY).toBe(12);
    const { unique_scans } = await analytics();
    // Anna and Cleo count again for each worker with its own salt.
    expect(unique_scans).toBeGreaterThanOrEqual(4);
    expect(unique_scans).toBeLessThanOrEqual(3 + 2 + 2);
  }, 180_000);

  test('no record of any topic contains an address, a page or a language of a visitor', async () => {
    const log = await openLog({
      kafkaBrokers: kafka ? [kafka.brokers] : [],
      databaseUrl: postgres.url,
      clientId: 'privacy',
      logger: pino({ level: 'silent' }),
    });
    for (const { name } of TOPICS) {
      const records: Buffer[] = [];
      const followed = log.follow({
        topic: name,
        from: new Map(),
        handle: (some) => {
          for (const { key, value, headers } of some) {
            records.push(Buffer.concat([Buffer.from(key + JSON.stringify(headers)), value ?? Buffer.alloc(0)]));
          }
        },
      });
      // Nothing is compacted or expired yet.
      const ends = [...(await log.ends(name)).values()].reduce((sum, end) => sum + Number(end), 0);
      await expect.poll(() => records.length, EVENTUALLY).toBeGreaterThanOrEqual(ends);
      await followed.stop();
      const bytes = Buffer.concat(records);
      expect(secretsIn(bytes)).toEqual([]);
      expect(bytes.includes(AGENT)).toBe(name === SCANS.name);
    }
    await log.close();
  });

  test('nothing on disk contains one: the gateway with its spool and logs, Postgres with its write-ahead log, and Kafka', async () => {
    // Stopped, so that everything is written.
    for (const each of [...signpost.gateways, ...signpost.cores]) await each.kill('SIGTERM');
    await postgres.stop();
    await kafka?.kill();
    await expectNoSecrets([join(folder, 'postgres'), kafka?.folder ?? []].flat(), AGENT);
    await expectNoSecrets([signpost.dataDir], 'the gateway is ready');
  });
});

test('a destroyed salt is on no disk, so that no visitor can be traced to an address', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'signpost-salts-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  let postgres = await startPostgres({ folder });
  onTestFinished(() => postgres.stop());
  let database = await openDatabase(postgres.url, 2, entities);
  await database.migrate();
  const yesterday = Date.now() - DAY_MS;
  await makeSalts(database.pool, yesterday);
  const { rows } = await database.pool.query<{ salt: string }>(
    `select encode(salt, 'hex') as salt from visitor_salts order by day`,
  );
  const [destroyed = '', kept = ''] = rows.map(({ salt }) => salt);
  await database.close();
  // Stopped, so that everything is written.
  await postgres.stop();
  expect(await filesContaining(folder, Buffer.from(destroyed, 'hex'))).toHaveLength(1);

  postgres = await startPostgres({ folder });
  database = await openDatabase(postgres.url, 2, entities);
  await destroySalts(database.pool, Date.now() + 2 * HOUR_MS);
  await database.close();
  await postgres.stop();
  expect(await filesContaining(folder, Buffer.from(destroyed, 'hex'))).toEqual([]);
  expect(await filesContaining(folder, Buffer.from(kept, 'hex'))).toHaveLength(1);
});

/** The status of a scan by a visitor behind a proxy, over a new connection. */
function statusFor(visitor: string, url: string): Promise<number | undefined> {
  const headers = { 'x-forwarded-for': visitor, referer: PAGE, 'accept-language': LANGUAGE, 'user-agent': AGENT };
  return new Promise((resolve, reject) => {
    get(url, { headers, agent: false, timeout: 10_000 }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode));
    }).once('error', reject);
  });
}

function secretsIn(bytes: Buffer): string[] {
  return Object.keys(SECRETS).filter((name) => bytes.includes(SECRETS[name] as Buffer));
}

/** Expects that no file in these folders contains a secret, and that one contains `control`. */
async function expectNoSecrets(folders: readonly string[], control: string): Promise<void> {
  const found: string[] = [];
  let isControlled = false;
  for (const folder of folders) {
    for await (const { path, bytes } of filesBelow(folder)) {
      isControlled ||= bytes.includes(control);
      found.push(...secretsIn(bytes).map((secret) => `${secret} in ${path}`));
    }
  }
  expect(found).toEqual([]);
  expect(isControlled).toBe(true);
}

/** The files in a folder that contain these bytes. */
async function filesContaining(folder: string, sought: Buffer): Promise<string[]> {
  const paths: string[] = [];
  for await (const { path, bytes } of filesBelow(folder)) if (bytes.includes(sought)) paths.push(path);
  return paths;
}

async function* filesBelow(folder: string): AsyncGenerator<{ path: string; bytes: Buffer }> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) yield { path, bytes: await readFile(path) };
  }
}
