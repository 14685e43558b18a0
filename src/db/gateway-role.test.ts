import { setTimeout as sleep } from 'node:timers/promises';
import { create, toBinary } from '@bufbuild/protobuf';
import { Pool } from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import type { Log } from '../../common/log/log.ts';
import { openPostgresLog } from '../../common/log/postgres.ts';
import { INTERVAL_MS as UPKEEP_MS } from '../../common/log/postgres-retention.ts';
import { EVENTS, ROUTES, SCANS, SCANS_DEAD_LETTERS, TOPICS } from '../../common/log/topics.ts';
import { Answer, RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { recordingLogger } from '../../test/harness/recording-logger.ts';
import { entities } from '../entities.ts';
import { openDatabase } from './database.ts';
import { GATEWAY_ROLE } from './gateway-role.ts';

const logger = pino({ level: 'silent' });
const DENIED = 'permission denied';

/** A route that an attacker in control of a gateway would publish. */
const HIJACKED = toBinary(
  RouteSchema,
  create(RouteSchema, {
    version: 2n ** 62n,
    entry: {
      case: 'code',
      value: { shortCode: 'abcdefg', answer: Answer.REDIRECT, targetUrl: 'https://attacker.example/' },
    },
  }),
);

// Without such a role, the harness reports it, and fails where no test may be skipped.
describe.skipIf(inject('gatewayUrl') === null)('the role of gateways', () => {
  let owner: Pool;
  let pool: Pool;
  let core: Log;
  let gateway: Log;
  let ownerUrl: string;
  let gatewayUrl: string;

  beforeAll(async () => {
    ({ url: ownerUrl } = await freshDatabase());
    const url = new URL(inject('gatewayUrl') ?? '');
    url.pathname = new URL(ownerUrl).pathname;
    owner = new Pool({ connectionString: ownerUrl });
    gatewayUrl = url.href;
    pool = new Pool({ connectionString: gatewayUrl });
    core = openPostgresLog({ url: ownerUrl, clientId: 'core', logger });
    gateway = openPostgresLog({ url: gatewayUrl, clientId: 'gateway', logger });
    await core.ensureTopics(TOPICS);
    for (const { name } of TOPICS) await core.publish(name, [{ key: 'code', value: Buffer.from(name) }]);
  });
  afterAll(async () => void (await Promise.all([gateway.close(), core.close(), owner.end(), pool.end()])));

  test('publishes scans and follows routes', async () => {
    const before = await core.ends(SCANS.name);
    await gateway.publish(SCANS.name, [{ key: 'code', value: Buffer.from('scan'), headers: { gateway: '1' } }]);
    const scans: string[] = [];
    core.follow({
      topic: SCANS.name,
      from: before,
      handle: (records) => void scans.push(...records.map(({ value }) => String(value))),
    });
    await expect.poll(() => scans).toEqual(['scan']);
    const routes: string[] = [];
    gateway.follow({
      topic: ROUTES.name,
      from: new Map(),
      handle: (records) => void routes.push(...records.map(({ key }) => key)),
    });
    await expect.poll(() => routes).toEqual(['code']);
    expect(await gateway.ends(ROUTES.name)).toEqual(await core.ends(ROUTES.name));
  });

  test('looks up the targets of codes', async () => {
    await expect(pool.query('select short_code, target_url, paused, version from codes')).resolves.toBeDefined();
  });

  test.each([ROUTES, EVENTS, SCANS_DEAD_LETTERS])('cannot publish to $name', async ({ name }) => {
    const ends = await core.ends(name);
    await expect(gateway.publish(name, [{ key: 'code', value: HIJACKED }])).rejects.toThrow(DENIED);
    expect(await core.ends(name)).toEqual(ends);
  });

  test('cannot write routes or other records directly into the tables of the log', async () => {
    for (const { name } of TOPICS) {
      const insert = 'insert into log_records (topic, partition, "offset", compacted, key, headers, value)';
      const values = [name, HIJACKED];
      await expect(pool.query(`${insert} values ($1, 0, 999, true, 'code', '{}', $2)`, values)).rejects.toThrow(DENIED);
      await expect(pool.query('update log_records set value = $2 where topic = $1 and true', values)).rejects.toThrow(
        DENIED,
      );
      await expect(pool.query('delete from log_records where topic = $1', [name])).rejects.toThrow(DENIED);
      await expect(pool.query('update log_partitions set next = 999 where topic = $1', [name])).rejects.toThrow(DENIED);
    }
  });

  test.each([SCANS, SCANS_DEAD_LETTERS, EVENTS])('sees neither records of $name nor its end', async ({ name }) => {
    for (const table of ['log_records', 'log_partitions']) {
      const count = `select count(*)::integer as rows from ${table} where topic = $1`;
      expect((await owner.query(count, [name])).rows[0].rows).toBeGreaterThan(0);
      expect((await pool.query(count, [name])).rows).toEqual([{ rows: 0 }]);
    }
    expect(await gateway.ends(name)).toEqual(new Map());
  });

  test('reads routes with the index of the log, like a core', async () => {
    const client = await pool.connect();
    try {
      await client.query('set enable_seqscan = off; set enable_bitmapscan = off; set enable_sort = off');
      await client.query(
        `prepare records (text, integer, bigint) as select key, value from log_records
         where topic = $1 and partition = $2 and "offset" >= $3 order by "offset" limit 100`,
      );
      const { rows } = await client.query(`explain (costs off) execute records ('${ROUTES.name}', 1, 10)`);
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      expect(plan).toMatch(/Index Scan using log_records_pkey.*\n.*Index Cond: .*partition = 1.*"offset" >= /);
    } finally {
      client.release(true);
    }
  });

  test('does not try to shorten the log, as cores do', async () => {
    const { lines, logger: recording } = recordingLogger();
    const log = openPostgresLog({ url: gatewayUrl, clientId: 'gateway', logger: recording });
    await sleep(1.2 * UPKEEP_MS);
    await log.close();
    expect(lines).toEqual([]);
  });

  test('reads the salts of the visitor hash', async () => {
    await expect(pool.query('select day, salt from visitor_salts')).resolves.toBeDefined();
  });

  test.each([
    'select from api_keys',
    'select from accounts',
    'select from domains',
    'select from scans',
    'select from outbox',
    'select from log_groups',
    'select payload from codes',
    'select name from codes',
    'select clean from log_partitions',
    "update codes set target_url = 'https://example.com'",
    "insert into codes (id, account_id, type, short_code) values (uuidv7(), uuidv7(), 'dynamic', 'abcdefg')",
    "insert into outbox (topic, key) values ('signpost.routes.v1', 'x')",
    'delete from scans',
    'select from scan_visitors',
    "insert into visitor_salts values (current_date, '\\x00')",
    'delete from visitor_salts',
    'update log_groups set "offset" = 0',
    'update log_topics set retention_ms = 0',
    'truncate log_records',
    'create table public.mine (id int)',
    'create function public.mine() returns int language sql return 1',
    'create policy mine on log_records using (true)',
    'alter table log_records disable row level security',
    `grant select on api_keys to ${GATEWAY_ROLE}`,
  ])('may not %s', async (statement) => {
    await expect(pool.query(statement)).rejects.toThrow(/permission denied|must be owner/);
  });

  test('loses the privileges granted by older versions when a core starts', async () => {
    await owner.query(
      `grant select, insert, delete on log_records to ${GATEWAY_ROLE};
       grant select, update on log_partitions to ${GATEWAY_ROLE};
       grant select on domains to ${GATEWAY_ROLE};
       grant select (name) on codes to ${GATEWAY_ROLE}`,
    );
    await expect(pool.query('select token from domains')).resolves.toBeDefined();
    const database = await openDatabase(ownerUrl, 2, entities);
    await database.migrate();
    await database.close();
    for (const statement of [
      'select token from domains',
      'select name from codes',
      'delete from log_records',
      'update log_partitions set next = 0',
    ]) {
      await expect(pool.query(statement)).rejects.toThrow(DENIED);
    }
    await expect(pool.query('select target_url from codes')).resolves.toBeDefined();
  });
});
