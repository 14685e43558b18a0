import { pino } from 'pino';
import { beforeEach, expect, test, vi } from 'vitest';
import { EVENT_TYPES } from '../../common/contract/event-types.ts';
import { encodeId } from '../../common/contract/ids.ts';
import type { LogRecord } from '../../common/log/log.ts';
import { HOUR_MS } from '../../common/runtime/durations.ts';
import { fanOutRecords } from './fan-out.ts';
import { eventRecord, type Tenant, webhooksFixture } from './webhooks.fixture.ts';

const URL = 'https://hooks.example.com/';
const { pool, newAccount } = await webhooksFixture();
const logger = pino({ level: 'silent' });

let account: Tenant;
beforeEach(async () => {
  account = await newAccount();
});

const fanOut = (...records: LogRecord[]) => fanOutRecords(pool, records, logger);

async function deliveries(endpointId: string) {
  return (await account.webhooks.listDeliveries({ endpointId })).deliveries;
}

test('an event becomes a delivery for each endpoint of its account that is subscribed to its type', async () => {
  const [one, other] = [await account.addEndpoint(URL), await account.addEndpoint(URL, ['qr.created', 'qr.archived'])];
  const unsubscribed = await account.addEndpoint(
    URL,
    EVENT_TYPES.filter((type) => type !== 'qr.created'),
  );
  const otherAccount = await newAccount();
  const otherEndpoint = await otherAccount.addEndpoint(URL);
  const event = eventRecord(account.id);
  expect(await fanOut(event)).toBe(2);
  for (const { id } of [one, other]) {
    expect(await deliveries(id)).toMatchObject([{ eventId: event.headers.ce_id, eventType: 'qr.created' }]);
  }
  expect(await deliveries(unsubscribed.id)).toEqual([]);
  expect((await otherAccount.webhooks.listDeliveries({ endpointId: otherEndpoint.id })).deliveries).toEqual([]);
});

test('an event that is consumed again, alone or with others, creates no second delivery', async () => {
  const { id } = await account.addEndpoint(URL);
  const [first, second] = [eventRecord(account.id), eventRecord(account.id)];
  expect(await fanOut(first, first)).toBe(1);
  expect(await fanOut(first, second)).toBe(1);
  await Promise.all(Array.from({ length: 5 }, () => fanOut(first, second, eventRecord(account.id))));
  expect(await deliveries(id)).toHaveLength(7);
});

test('the body contains type, time and data of the event, and is byte-identical for every endpoint', async () => {
  await account.addEndpoint(URL);
  await account.addEndpoint(URL);
  const data = { name: 'schön "€" \u2028 \\', nested: [1.5, null] };
  const event = eventRecord(account.id, { data });
  await fanOut(event);
  const { rows } = await pool.query<{ body: string }>('select body from webhook_deliveries where account_id = $1', [
    account.id,
  ]);
  expect(rows).toHaveLength(2);
  expect(rows[0]).toEqual(rows[1]);
  const timestamp = event.headers.ce_time;
  expect(JSON.parse(rows[0]?.body ?? '')).toEqual({ type: 'qr.created', timestamp, data });
});

test('an endpoint gets no events from before its creation, and none while it is disabled', async () => {
  const { id } = await account.addEndpoint(URL);
  expect(await fanOut(eventRecord(account.id, { age: HOUR_MS }))).toBe(0);
  // Its transaction may have begun before and committed since.
  expect(await fanOut(eventRecord(account.id, { age: 4 * 60_000 }))).toBe(1);
  await account.webhooks.updateEndpoint({ id, enabled: false });
  expect(await fanOut(eventRecord(account.id))).toBe(0);
  await account.webhooks.updateEndpoint({ id, enabled: true });
  expect(await fanOut(eventRecord(account.id))).toBe(1);
});

test('events of accounts without an enabled endpoint are not sent to Postgres', async () => {
  const [disabled, none] = [await newAccount(), await newAccount()];
  const { id } = await disabled.addEndpoint(URL);
  await disabled.webhooks.updateEndpoint({ id, enabled: false });
  await account.addEndpoint(URL);
  const query = vi.spyOn(pool, 'query');
  const events = [account, disabled, none].map((tenant) => eventRecord(tenant.id, { data: { of: tenant.id } }));
  expect(await fanOut(...events)).toBe(1);
  const sent = query.mock.calls.map(([statement]) => (statement as unknown as { values: unknown[] }).values);
  query.mockRestore();
  const bodies = Buffer.concat(sent.flat().filter((value) => Buffer.isBuffer(value))).toString();
  const ids = JSON.stringify(sent.at(-1)?.slice(0, -1));
  expect(bodies).toContain(account.id);
  expect(ids).toContain(account.id);
  for (const other of [disabled.id, none.id]) {
    expect(bodies).not.toContain(other);
    expect(ids).not.toContain(other);
  }
});

test('deliveries are listed in the order of their events, newest first', async () => {
  const { id } = await account.addEndpoint(URL);
  const events = Array.from({ length: 50 }, () => eventRecord(account.id));
  await fanOut(...events);
  const { deliveries: listed } = await account.webhooks.listDeliveries({ endpointId: id, limit: 100 });
  expect(listed.map(({ eventId }) => eventId)).toEqual(events.map(({ headers }) => headers.ce_id).reverse());
});

test('a record that is not an event does not block other records', async () => {
  await account.addEndpoint(URL);
  const valid = eventRecord(account.id);
  const incomplete = ['ce_id', 'ce_type', 'ce_source', 'ce_time'].map((name) => {
    const { [name]: _, ...headers } = valid.headers;
    return { ...valid, headers };
  });
  const source = `/accounts/${encodeId('acct', account.id)}/x`;
  const badSource = { ...valid, headers: { ...valid.headers, ce_source: source } };
  expect(await fanOut(...incomplete, badSource, { ...valid, value: null }, valid)).toBe(1);
});

test('an endpoint that is disabled while events are consumed has no pending deliveries afterwards', async () => {
  const { id } = await account.addEndpoint(URL);
  const running = Array.from({ length: 20 }, () => fanOut(eventRecord(account.id), eventRecord(account.id)));
  await account.webhooks.updateEndpoint({ id, enabled: false });
  await Promise.all(running);
  const { rows } = await pool.query(`select from webhook_deliveries where account_id = $1 and status = 'pending'`, [
    account.id,
  ]);
  expect(rows).toEqual([]);
});

test('events for tens of thousands of endpoints become deliveries in time, though the statistics know of none', async () => {
  const { rows } = await pool.query<{ id: string }>(
    `insert into accounts (id, name, plan) select uuidv7(), 'Test', 'business' from generate_series(1, 600) returning id`,
  );
  const accounts = rows.map(({ id }) => id);
  await pool.query(
    `insert into webhook_endpoints (id, account_id, url, events, secret, verified_at, disabled_reason)
     select uuidv7(), id, $2, '{qr.created}', '', now(), 'It was switched off.'
     from unnest($1::uuid[]) as id, generate_series(1, 50)`,
    [accounts, URL],
  );
  await pool.query('analyze webhook_endpoints');
  await pool.query('update webhook_endpoints set disabled_reason = null where account_id = any($1)', [accounts]);
  expect(await fanOut(...accounts.map((id) => eventRecord(id)))).toBe(30_000);
  const due = `select count(*)::integer as due from webhook_endpoints where account_id = any($1) and due_at <= now()`;
  expect((await pool.query(due, [accounts])).rows).toEqual([{ due: 30_000 }]);
});
