import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { MAY_BE_IDLE } from '../../common/postgres/connection-options.ts';
import { isUnavailable } from '../../common/postgres/unavailable.ts';
import { startTcpProxy } from '../../test/harness/tcp-proxy.ts';
import { openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { fanOutRecords } from './fan-out.ts';
import { eventRecord, webhooksFixture } from './webhooks.fixture.ts';

const { url, pool, newAccount } = await webhooksFixture();
const logger = pino({ level: 'silent' });

test('a fan-out whose Postgres vanished times out, and repeated creates each delivery once', async () => {
  const account = await newAccount();
  const { id } = await account.addEndpoint('https://hooks.example.com/');
  const postgres = await startTcpProxy(url);
  const behindProxy = await openDatabase(postgres.url, 4, entities);
  onTestFinished(() => behindProxy.close());
  const fanOut = (...records: Parameters<typeof fanOutRecords>[1]) => fanOutRecords(behindProxy.pool, records, logger);
  const before = eventRecord(account.id);
  await fanOut(before);
  // The first statement.
  postgres.vanish();
  const events = [eventRecord(account.id), eventRecord(account.id)];
  await expect(fanOut(...events)).rejects.toSatisfy(isUnavailable);
  // The statement that creates the deliveries.
  const blocker = await pool.connect();
  try {
    await blocker.query('begin');
    await blocker.query(MAY_BE_IDLE);
    await blocker.query('select from webhook_endpoints for update');
    const created = fanOut(...events);
    const waiting = `select from pg_stat_activity where datname = current_database() and query like 'with event as%'
                     and wait_event_type = 'Lock'`;
    await expect.poll(async () => (await pool.query(waiting)).rowCount).toBe(1);
    postgres.vanish();
    await expect(created).rejects.toSatisfy(isUnavailable);
  } finally {
    await blocker.query('rollback');
    blocker.release();
  }
  await fanOut(...events);
  const { deliveries } = await account.webhooks.listDeliveries({ endpointId: id });
  expect(deliveries.map(({ eventId }) => eventId)).toEqual(
    [before, ...events].map(({ headers }) => headers.ce_id).reverse(),
  );
});
