import { pino } from 'pino';
import { expect, test } from 'vitest';
import { decodeId, newUuid } from '../../../common/contract/ids.ts';
import { finishEndpoints } from '../endpoints/finish-endpoints.ts';
import { fanOutRecords } from '../fan-out.ts';
import { eventRecord, webhooksFixture } from '../webhooks.fixture.ts';
import { type Capacity, type DeliveryResult, type DueDelivery, queueOf } from './queue.ts';

// The queue is that of all accounts, so each test deletes the endpoints of the ones before.

const URL = 'https://hooks.example.com/';
const ALL = { working: 10, throttled: 10 };
const MANY_BYTES = 2 ** 30;
const { pool, secretCipher, newAccount } = await webhooksFixture();
const newQueue = () => queueOf(pool, newUuid(), 60_000, secretCipher.keyIds);

/** Adds an endpoint with so many pending deliveries. */
async function addEndpoint(events: number) {
  await pool.query('delete from webhook_endpoints');
  const account = await newAccount();
  const endpoint = await account.addEndpoint(URL);
  const records = Array.from({ length: events }, () => eventRecord(account.id));
  await fanOutRecords(pool, records, pino({ level: 'silent' }));
  return { ...account, account: account.id, hook: endpoint.id, id: decodeId('hook', endpoint.id) ?? '' };
}

async function capacityOf(id: string): Promise<Capacity> {
  const { rows } = await pool.query('select url, secret from webhook_endpoints where id = $1', [id]);
  return { id, ...rows[0], deliveries: 10, bytes: MANY_BYTES, testsOnly: false, hasNone: true };
}

function failed({ id, attempts }: DueDelivery, newStatus: DeliveryResult['newStatus']): DeliveryResult {
  const retryInS = newStatus === 'pending' ? 5 : null;
  return { delivery: id, attempts, at: new Date(), status: 500, latencyMs: 1, response: '', newStatus, retryInS };
}

function succeeded({ id, attempts }: DueDelivery): DeliveryResult {
  const answered = { at: new Date(), status: 204, latencyMs: 1, response: '' };
  return { delivery: id, attempts, ...answered, newStatus: 'succeeded', retryInS: null };
}

test('one process leases an endpoint until it releases it or the lease expires', async () => {
  const { id } = await addEndpoint(1);
  const [one, other] = [newQueue(), newQueue()];
  const claimedBy = async (queue: typeof one) => (await queue.claim(ALL)).map((row) => row.id);
  expect(await claimedBy(one)).toEqual([id]);
  expect(await other.renew([id])).toEqual([]);
  await other.release(new Map([[id, null]]));
  expect(await claimedBy(other)).toEqual([]);
  expect(await one.renew([id])).toMatchObject([{ id }]);
  await one.release(new Map([[id, null]]));
  expect(await claimedBy(other)).toEqual([id]);
  await pool.query('update webhook_endpoints set leased_until = now()');
  expect(await claimedBy(one)).toEqual([id]);
  expect(await other.renew([id])).toEqual([]);
});

test('only due deliveries that were not fetched before are sent, and none once the URL or the secret has changed', async () => {
  const { id, hook, webhooks } = await addEndpoint(3);
  const queue = newQueue();
  const capacity = await capacityOf(id);
  const [fetched, later, due] = await queue.due([capacity], [], MANY_BYTES);
  await pool.query(`update webhook_deliveries set next_attempt_at = now() + interval '1 h' where id = $1`, [later?.id]);
  const ids = async (known: Capacity) =>
    (await queue.due([known], [fetched?.id ?? ''], MANY_BYTES)).map((each) => each.id);
  expect(await ids(capacity)).toEqual([due?.id]);
  expect(await ids({ ...capacity, testsOnly: true })).toEqual([]);
  await webhooks.rotateSecret({ id: hook });
  expect(await ids(capacity)).toEqual([]);
  expect(await ids(await capacityOf(id))).toEqual([due?.id]);
  expect(await ids({ ...(await capacityOf(id)), url: `${URL}former` })).toEqual([]);
});

test('no more bodies are read than fit, of one endpoint and in all, but one of each endpoint that has none', async () => {
  const { id } = await addEndpoint(3);
  await pool.query(`update webhook_deliveries set body = repeat('x', 1000)`);
  const capacity = await capacityOf(id);
  const count = async (bytes: number, of: Partial<Capacity>) =>
    (await newQueue().due([{ ...capacity, ...of }], [], bytes)).length;
  expect(await count(MANY_BYTES, {})).toBe(3);
  expect(await count(MANY_BYTES, { bytes: 1_001 })).toBe(2);
  expect(await count(MANY_BYTES, { bytes: 1_000 })).toBe(1);
  expect(await count(1_001, {})).toBe(2);
  expect(await count(0, {})).toBe(1);
  expect(await count(-1, { hasNone: false })).toBe(0);
});

test('the result of an attempt before a delivery was resent, or failed with its endpoint, is listed and changes nothing', async () => {
  const { id, hook, webhooks } = await addEndpoint(2);
  await pool.query('update webhook_deliveries set attempts = 9');
  const queue = newQueue();
  const [resent, failing] = await queue.due([await capacityOf(id)], [], MANY_BYTES);
  if (!resent || !failing) throw new Error('no delivery is due');
  const { deliveries } = await webhooks.listDeliveries({ endpointId: hook });
  await webhooks.resendDelivery({ id: deliveries.find((each) => decodeId('dlv', each.id) === resent.id)?.id ?? '' });
  await pool.query(`update webhook_deliveries set status = 'failed', next_attempt_at = null where id = $1`, [
    failing.id,
  ]);
  await queue.record([{ id, url: URL, results: [failed(resent, 'failed'), failed(failing, 'pending')] }]);
  const { rows } = await pool.query(
    `select id, status, attempts, (select count(*)::integer from webhook_attempts where delivery_id = id) as listed
     from webhook_deliveries order by attempts`,
  );
  expect(rows).toEqual([
    { id: resent.id, status: 'pending', attempts: 0, listed: 1 },
    { id: failing.id, status: 'failed', attempts: 9, listed: 1 },
  ]);
});

test('the result of an attempt at an endpoint that is being deleted, or gone, is recorded if its delivery is there, and revives neither', async () => {
  const { id, hook, account, webhooks } = await addEndpoint(1);
  const queue = newQueue();
  await queue.claim(ALL);
  const [delivery] = await queue.due([await capacityOf(id)], [], MANY_BYTES);
  if (!delivery) throw new Error('no delivery is due');
  await pool.query(
    `insert into webhook_deliveries (id, endpoint_id, account_id, event_id, event_type, body)
     select uuidv7(), $1, $2, uuidv7(interval '-1 hour'), 'qr.created', '{}' from generate_series(1, 5000)`,
    [id, account],
  );
  await webhooks.deleteEndpoint({ id: hook });
  const recordAndRelease = async () => {
    await queue.record([{ id, url: URL, results: [failed(delivery, 'pending')] }]);
    expect(await queue.renew([id])).toEqual([]);
    await queue.release(new Map([[id, null]]));
    expect([await queue.claim(ALL), await queue.nextDue()]).toEqual([[], undefined]);
  };
  await recordAndRelease();
  const { rows } = await pool.query('select id, attempts from webhook_deliveries');
  expect(rows).toEqual([{ id: delivery.id, attempts: 1 }]);
  await finishEndpoints(pool, new AbortController().signal);
  await recordAndRelease();
  const left = 'select id from webhook_endpoints union all select delivery_id from webhook_attempts';
  expect((await pool.query(left)).rows).toEqual([]);
});

test('an endpoint is verified by a test event that succeeds at its own URL, and fails by one that fails there', async () => {
  const { id, hook, webhooks } = await addEndpoint(0);
  await webhooks.updateEndpoint({ id: hook, enabled: false });
  await webhooks.updateEndpoint({ id: hook, enabled: true });
  const queue = newQueue();
  const due = async () => (await queue.due([await capacityOf(id)], [], MANY_BYTES))[0] as DueDelivery;
  const record = async (url: string, result: DeliveryResult) =>
    (await queue.record([{ id, url, results: [result] }])).changed;
  const delivery = await due();
  for (const url of ['1', '2']) expect(await record(`${URL}${url}`, failed(delivery, 'pending'))).toEqual([]);
  await pool.query('update webhook_deliveries set attempts = 0, next_attempt_at = now()');
  expect(await record(URL, failed(delivery, 'pending'))).toMatchObject([
    { id, verified_at: null, failing_ms: expect.any(Number) },
  ]);
  await pool.query('update webhook_deliveries set next_attempt_at = now()');
  expect(await record(URL, succeeded(await due()))).toMatchObject([
    { id, verified_at: expect.any(Date), failing_ms: null },
  ]);
});

test('attempts made before an endpoint was disabled and enabled again do not decide about its new test', async () => {
  const { id, hook, webhooks } = await addEndpoint(2);
  await webhooks.sendTestEvent({ id: hook });
  const queue = newQueue();
  const inFlight = await queue.due([await capacityOf(id)], [], MANY_BYTES);
  expect(inFlight).toHaveLength(3);
  await webhooks.updateEndpoint({ id: hook, enabled: false });
  await webhooks.updateEndpoint({ id: hook, enabled: true });
  for (const result of [...inFlight.map(succeeded), ...inFlight.map((each) => failed(each, 'failed'))]) {
    const { changed, tests } = await queue.record([{ id, url: URL, results: [result] }]);
    expect([changed, [...tests]]).toEqual([[], []]);
  }
});
