import { Pool } from 'pg';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { freshDatabase } from '../../test/harness/database.ts';
import { openPostgresLog } from '../events/log/postgres.ts';
import { ROUTES, SCANS, TOPICS } from '../events/log/topics.ts';

const logger = pino({ level: 'silent' });

describe.skipIf(inject('gatewayUrl') === null)('the role of gateways', () => {
  let ownerUrl: string;
  let gatewayUrl: string;
  let pool: Pool;

  beforeAll(async () => {
    ({ url: ownerUrl } = await freshDatabase());
    const url = new URL(inject('gatewayUrl') ?? '');
    url.pathname = new URL(ownerUrl).pathname;
    gatewayUrl = url.href;
    pool = new Pool({ connectionString: gatewayUrl });
  });
  afterAll(() => pool.end());

  test('publishes scans and follows routes', async () => {
    const core = openPostgresLog({ url: ownerUrl, clientId: 'core', logger });
    await core.ensureTopics(TOPICS);
    await core.publish(ROUTES.name, [{ key: 'code', value: Buffer.from('route') }]);
    const gateway = openPostgresLog({ url: gatewayUrl, clientId: 'gateway', logger });
    await gateway.publish(SCANS.name, [{ key: 'code', value: Buffer.from('scan') }]);
    const routes: string[] = [];
    gateway.follow({
      topic: ROUTES.name,
      from: new Map(),
      handle: (records) => void routes.push(...records.map(({ key }) => key)),
    });
    await expect.poll(() => routes, { timeout: 10_000 }).toEqual(['code']);
    await Promise.all([core.close(), gateway.close()]);
  });

  test('looks up where codes lead', async () => {
    await expect(pool.query('select short_code, target_url, paused, version from codes')).resolves.toBeDefined();
    await expect(pool.query('select hostname from domains')).resolves.toBeDefined();
  });

  test('reads the salts of the visitor hash', async () => {
    await expect(pool.query('select day, salt from visitor_salts')).resolves.toBeDefined();
  });

  test.each([
    'select from api_keys',
    'select from accounts',
    'select payload from codes',
    "update codes set target_url = 'https://example.com'",
    "insert into outbox (topic, key) values ('signpost.routes.v1', 'x')",
    'delete from scans',
    'select from scan_visitors',
    "insert into visitor_salts values (current_date, '\\x00')",
    'delete from visitor_salts',
    'update log_groups set "offset" = 0',
    'create table public.mine (id int)',
  ])('may not %s', async (statement) => {
    await expect(pool.query(statement)).rejects.toThrow('permission denied');
  });
});
