import { pino } from 'pino';
import { beforeEach, expect, test } from 'vitest';
import { encodeId } from '../../common/contract/ids.ts';
import type { LogRecord } from '../../common/log/log.ts';
import { EVENT_TYPES } from '../events/cloud-event.ts';
import { fanOutRecords } from './fan-out.ts';
import { eventRecord, type Tenant, webhooksFixture } from './webhooks.fixture.ts';

const URL = 'https://hooks.example.com/';
const HOUR_MS = 3_600_000;
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

test('an event becomes a delivery for each endpoint of its account that wants its type', async () => {
  const [one, other] = [await account.endpoint(URL), await account.endpoint(URL, ['qr.created', 'qr.archived'])];
  const unsubscribed = await account.endpoint(
    URL,
    EVENT_TYPES.filter((type) => type !== 'qr.created'),
  );
  const stranger = await newAccount();
  const theirs = await stranger.endpoint(URL);
  const event = eventRecord(account.id);
  expect(await fanOut(event)).toBe(2);
  for (const { id } of [one, other]) {
    expect(await deliveries(id)).toMatchObject([{ eventId: event.headers.ce_id, eventType: 'qr.created' }]);
  }
  expect(await deliveries(unsubscribed.id)).toEqual([]);
  expect((await stranger.webhooks.listDeliveries({ endpointId: theirs.id })).deliveries).toEqual([]);
});

test('an event that comes again, alone or with others, makes no second delivery', async () => {
  const { id } = await account.endpoint(URL);
  const [first, second] = [eventRecord(account.id), eventRecord(account.id)];
  expect(await fanOut(first, first)).toBe(1);
  expect(await fanOut(first, second)).toBe(1);
  await Promise.all(Array.from({ length: 5 }, () => fanOut(first, second, eventRecord(account.id))));
  expect(await deliveries(id)).toHaveLength(7);
});

test('the body is type, time and data of the event, byte for byte the same for every endpoint', async () => {
  await account.endpoint(URL);
  await account.endpoint(URL);
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

test('an endpoint gets nothing that is older than itself, and nothing while it is disabled', async () => {
  const { id } = await account.endpoint(URL);
  expect(await fanOut(eventRecord(account.id, { age: HOUR_MS }))).toBe(0);
  await account.webhooks.updateEndpoint({ id, enabled: false });
  expect(await fanOut(eventRecord(account.id))).toBe(0);
  await account.webhooks.updateEndpoint({ id, enabled: true });
  expect(await fanOut(eventRecord(account.id))).toBe(1);
});

test('deliveries list in the order of their events, newest first', async () => {
  const { id } = await account.endpoint(URL);
  const events = Array.from({ length: 50 }, () => eventRecord(account.id));
  await fanOut(...events);
  const { deliveries: listed } = await account.webhooks.listDeliveries({ endpointId: id, limit: 100 });
  expect(listed.map(({ eventId }) => eventId)).toEqual(events.map(({ headers }) => headers.ce_id).reverse());
});

test('a record that is no event holds nobody up', async () => {
  await account.endpoint(URL);
  const good = eventRecord(account.id);
  const broken = ['ce_id', 'ce_type', 'ce_source', 'ce_time'].map((name) => {
    const { [name]: _, ...headers } = good.headers;
    return { ...good, headers };
  });
  const source = `/accounts/${encodeId('acct', account.id)}/x`;
  const strange = { ...good, headers: { ...good.headers, ce_source: source } };
  expect(await fanOut(...broken, strange, { ...good, value: null }, good)).toBe(1);
});

test('an endpoint that is disabled while events come is left with none that wait', async () => {
  const { id } = await account.endpoint(URL);
  const coming = Array.from({ length: 20 }, () => fanOut(eventRecord(account.id), eventRecord(account.id)));
  await account.webhooks.updateEndpoint({ id, enabled: false });
  await Promise.all(coming);
  const { rows } = await pool.query(`select from webhook_deliveries where account_id = $1 and status = 'pending'`, [
    account.id,
  ]);
  expect(rows).toEqual([]);
});
