import { pino } from 'pino';
import { expect, onTestFinished, test, vi } from 'vitest';
import { decodeId } from '../../../common/contract/ids.ts';
import { MAY_BE_IDLE } from '../../../common/postgres/connection-options.ts';
import { transaction } from '../../../common/postgres/sql.ts';
import { isUnavailable } from '../../../common/postgres/unavailable.ts';
import { DeliveryStatus } from '../../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { startTcpProxy } from '../../../test/harness/tcp-proxy.ts';
import { openDatabase } from '../../db/database.ts';
import { entities } from '../../entities.ts';
import { webhooksFixture } from '../webhooks.fixture.ts';
import { disableAndAudit, disableIdle } from './disable-policy.ts';

const EVENTUALLY = { timeout: 20_000, interval: 25 };
const ENDPOINT = 'http://localhost:9/';
const logger = pino({ level: 'silent' });
const { url, pool, newAccount } = await webhooksFixture();

test('an endpoint that was being disabled when Postgres vanished does not keep the deliveries waiting', async () => {
  const account = await newAccount();
  const id = decodeId('hook', (await account.addEndpoint(ENDPOINT)).id) ?? '';
  const postgres = await startTcpProxy(url);
  const behindProxy = await openDatabase(postgres.url, 2, entities);
  onTestFinished(() => behindProxy.close());
  const disable = () =>
    disableAndAudit(behindProxy.pool, { id, account_id: account.id, url: ENDPOINT }, 'It answered 410 Gone.', logger);
  await transaction(pool, async (tx) => {
    await tx.query(MAY_BE_IDLE);
    await tx.query('select from webhook_endpoints for no key update');
    const disabling = disable().catch((error: unknown) => error);
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await vi.waitFor(async () => expect((await pool.query(waiting)).rowCount).toBe(1), EVENTUALLY);
    postgres.vanish();
    expect(await disabling).toSatisfy(isUnavailable);
  });
  await disable();
  const { rows } = await pool.query('select disabled_reason from webhook_endpoints');
  expect(rows).toEqual([{ disabled_reason: 'It answered 410 Gone.' }]);
});

test('deliveries created while an endpoint waits to be disabled fail too', async () => {
  const account = await newAccount();
  const { id: hook } = await account.addEndpoint(ENDPOINT);
  const id = decodeId('hook', hook) ?? '';
  const disabling = await transaction(pool, async (tx) => {
    await tx.query(MAY_BE_IDLE);
    await tx.query('select from webhook_endpoints where id = $1 for no key update', [id]);
    await tx.query(
      `insert into webhook_deliveries (id, endpoint_id, account_id, event_id, event_type, body)
       values (uuidv7(), $1, $2, uuidv7(), 'qr.created', '{}')`,
      [id, account.id],
    );
    const disabled = disableAndAudit(
      pool,
      { id, account_id: account.id, url: ENDPOINT },
      'It answered 410 Gone.',
      logger,
    );
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await vi.waitFor(async () => expect((await pool.query(waiting)).rowCount).toBe(1), EVENTUALLY);
    return { disabled };
  });
  expect(await disabling.disabled).toBe(true);
  const { deliveries } = await account.webhooks.listDeliveries({ endpointId: hook });
  expect(deliveries).toMatchObject([{ status: DeliveryStatus.FAILED }]);
});

test('an endpoint that is tested again while it waits to be disabled as idle stays enabled', async () => {
  const account = await newAccount();
  const created = await account.webhooks.createEndpoint({ url: ENDPOINT, events: ['qr.created'] });
  const id = decodeId('hook', created.endpoint?.id ?? '') ?? '';
  await pool.query(`update webhook_deliveries set status = 'failed', next_attempt_at = null where endpoint_id = $1`, [
    id,
  ]);
  const { disabling } = await transaction(pool, async (tx) => {
    await tx.query(MAY_BE_IDLE);
    await tx.query('select from webhook_endpoints where id = $1 for no key update', [id]);
    const started = disableIdle(pool, logger);
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await vi.waitFor(async () => expect((await pool.query(waiting)).rowCount).toBe(1), EVENTUALLY);
    await tx.query(
      `insert into webhook_deliveries (id, endpoint_id, account_id, event_id, event_type, body)
       values (uuidv7(), $1, $2, uuidv7(), 'webhook.test', '{}')`,
      [id, account.id],
    );
    return { disabling: started };
  });
  await disabling;
  expect((await account.webhooks.listEndpoints({})).endpoints).toMatchObject([{ enabled: true }]);
});

test('an endpoint is not disabled for what its former URL answered', async () => {
  const account = await newAccount();
  const { id: hook } = await account.addEndpoint(ENDPOINT);
  const url = `${ENDPOINT}moved`;
  await account.webhooks.updateEndpoint({ id: hook, url });
  const row = { id: decodeId('hook', hook) ?? '', account_id: account.id };
  expect(await disableAndAudit(pool, { ...row, url: ENDPOINT }, 'It answered 410 Gone.', logger)).toBe(false);
  const enabled = async () => (await account.webhooks.listEndpoints({})).endpoints.map((endpoint) => endpoint.enabled);
  expect(await enabled()).toEqual([true]);
  expect(await disableAndAudit(pool, { ...row, url }, 'It answered 410 Gone.', logger)).toBe(true);
  expect(await enabled()).toEqual([false]);
});
