import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { pino } from 'pino';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { decodeId } from '../../common/contract/ids.ts';
import { listen, notifying } from '../../common/postgres/notifications.ts';
import { transaction } from '../../common/postgres/sql.ts';
import { DeliveryStatus } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { ormTransaction } from '../db/orm-transaction.ts';
import { type DelivererOptions, startDeliverer } from './deliverer.ts';
import { lockEndpoint } from './endpoints.ts';
import { fanOutRecords } from './fan-out.ts';
import { unguardedConnect } from './guarded-connect.ts';
import { ACCEPT, type Answering, HANG, type Receiver, slowly, startReceiver } from './receiver.fixture.ts';
import { eventRecord, type Tenant, webhooksFixture } from './webhooks.fixture.ts';

const EVENTUALLY = { timeout: 20_000, interval: 25 };
const { url, orm, pool, seal, secretKey, newAccount } = await webhooksFixture();
const logger = pino({ level: 'silent' });
const notifications = listen(pool, logger);
afterAll(() => notifications.stop());

let account: Tenant;
beforeEach(async () => {
  await pool.query('truncate webhook_endpoints, webhook_attempt_budgets cascade');
  account = await newAccount();
});

function deliver(limits: DelivererOptions['limits'] = {}) {
  const deliverer = startDeliverer({
    pool,
    notifications,
    seal,
    connect: unguardedConnect(),
    logger,
    limits: { grace: 50, ...limits },
  });
  onTestFinished(() => deliverer.stop());
  return deliverer;
}

/** Gives the account's endpoints so many events. */
async function events(count: number, tenant = account): Promise<string[]> {
  const records = Array.from({ length: count }, () => eventRecord(tenant.id));
  await fanOutRecords(pool, records, logger);
  return records.map(({ headers }) => headers.ce_id ?? '');
}

async function endpoint(answer: Answering, tenant = account): Promise<Receiver & { id: string; secret: string }> {
  const receiver = await startReceiver(answer);
  return { ...receiver, ...(await tenant.endpoint(receiver.url)) };
}

/** An endpoint as an account adds it: it has to answer its test event first. */
async function unverified(url: string, tenant = account): Promise<string> {
  return (await tenant.webhooks.createEndpoint({ url, events: ['qr.created'] })).endpoint?.id ?? '';
}

async function deliveries(endpointId: string) {
  return (await account.webhooks.listDeliveries({ endpointId, limit: 100 })).deliveries;
}

async function theOnly(endpointId: string) {
  const [delivery, ...others] = await deliveries(endpointId);
  if (!delivery || others.length > 0) throw new Error(`there are ${others.length} others`);
  return delivery;
}

const succeeded = (endpointId: string, count: number) =>
  vi.waitFor(async () => {
    const { rows } = await pool.query(
      `select count(*)::integer as done from webhook_deliveries where endpoint_id = $1 and status = 'succeeded'`,
      [decodeId('hook', endpointId)],
    );
    expect(rows[0].done).toBe(count);
  }, EVENTUALLY);

/**
 * Brings the next attempt of every delivery forward to now, and their place on the schedule where one is named. A process
 * that holds the endpoint hears of it when it has given it back, after a second.
 */
const makeDue = (attempts?: number) =>
  transaction(pool, async (tx) => {
    await tx.query('select from webhook_endpoints order by id for no key update');
    await tx.query(
      `with due as (
         update webhook_deliveries set next_attempt_at = now(), attempts = coalesce($1, attempts)
         where status = 'pending' returning endpoint_id
       )
       update webhook_endpoints set due_at = now(), attempt_after = null where id in (select endpoint_id from due)`,
      [attempts ?? null],
    );
    await tx.query(`select ${notifying('webhooks')}`);
  });

test('what was signed and sent is what was kept, and the attempt is listed', async () => {
  const to = await endpoint((_, response) => void response.writeHead(200).end('thanks'));
  const [id] = await events(1);
  deliver();
  await succeeded(to.id, 1);
  const [got] = to.received;
  expect(got?.id).toBe(id);
  const verified = new Webhook(to.secret).verify(got?.body ?? '', got?.headers as Record<string, string>);
  expect(verified).toMatchObject({ type: 'qr.created' });
  const delivery = await theOnly(to.id);
  expect(delivery).toMatchObject({ eventId: id, status: DeliveryStatus.SUCCEEDED });
  expect(delivery.nextAttemptAt).toBeUndefined();
  expect(delivery.attempts).toMatchObject([{ status: 200, response: 'thanks' }]);
});

test('a test event is sent on demand', async () => {
  const to = await endpoint(ACCEPT);
  deliver();
  const { delivery } = await account.webhooks.sendTestEvent({ id: to.id });
  await succeeded(to.id, 1);
  expect(to.received).toMatchObject([{ id: delivery?.eventId }]);
  expect(JSON.parse(to.received[0]?.body ?? '')).toMatchObject({ type: 'webhook.test', data: { endpoint_id: to.id } });
});

test('what failed comes again under the same id with another time, until it succeeds', async () => {
  let turn = 0;
  const to = await endpoint((_, response) => void response.writeHead(turn++ < 2 ? 503 : 200).end(`${turn}`));
  const [id] = await events(1);
  deliver();
  for (const failures of [1, 2]) {
    await vi.waitFor(async () => expect((await theOnly(to.id)).attempts).toHaveLength(failures), EVENTUALLY);
    expect(await theOnly(to.id)).toMatchObject({ status: DeliveryStatus.PENDING });
    // The timestamp of Standard Webhooks has seconds; and it has given the endpoint back by then.
    await sleep(1_500);
    await makeDue();
  }
  await succeeded(to.id, 1);
  expect(to.received.map((got) => got.id)).toEqual([id, id, id]);
  expect(new Set(to.received.map(({ headers }) => headers['webhook-timestamp'])).size).toBe(3);
  expect((await theOnly(to.id)).attempts.map(({ status, response }) => `${status} ${response}`)).toEqual([
    '503 1',
    '503 2',
    '200 3',
  ]);
});

test('a redirect is a failure', async () => {
  const elsewhere = await startReceiver();
  const to = await endpoint((_, response) => void response.writeHead(302, { location: elsewhere.url }).end());
  await events(1);
  deliver();
  await vi.waitFor(async () => expect((await theOnly(to.id)).attempts).toMatchObject([{ status: 302 }]), EVENTUALLY);
  expect((await theOnly(to.id)).status).toBe(DeliveryStatus.PENDING);
  expect(elsewhere.received).toEqual([]);
});

test.each([
  [1, 5],
  [2, 300],
  [5, 5 * 3_600],
  [9, 24 * 3_600],
])('after failure %i the next attempt is %i seconds away, give or take a tenth', async (failures, seconds) => {
  const to = await endpoint((_, response) => void response.writeHead(500).end());
  await events(1);
  await makeDue(failures - 1);
  const before = Date.now();
  deliver();
  await vi.waitFor(async () => expect((await theOnly(to.id)).attempts).toHaveLength(1), EVENTUALLY);
  const { nextAttemptAt } = await theOnly(to.id);
  const away = Number(nextAttemptAt?.seconds) - before / 1_000;
  expect(away).toBeGreaterThan(seconds * 0.9 - 1);
  expect(away).toBeLessThan(seconds * 1.1 + (Date.now() - before) / 1_000 + 1);
});

test('after the tenth failure the delivery is given up, and sending it again starts anew', async () => {
  let status = 500;
  const to = await endpoint((_, response) => void response.writeHead(status).end());
  await events(1);
  await makeDue(9);
  deliver();
  await vi.waitFor(async () => expect((await theOnly(to.id)).status).toBe(DeliveryStatus.FAILED), EVENTUALLY);
  expect((await theOnly(to.id)).nextAttemptAt).toBeUndefined();
  status = 200;
  await account.webhooks.resendDelivery({ id: (await theOnly(to.id)).id });
  await succeeded(to.id, 1);
  expect((await theOnly(to.id)).attempts.map((attempt) => attempt.status)).toEqual([500, 200]);
});

test('a 410 disables the endpoint at once: what waits is given up, and the audit says who did it', async () => {
  const to = await endpoint((_, response) => void response.writeHead(410).end());
  await events(30);
  deliver({ perEndpoint: 1, fetched: 3 });
  await vi.waitFor(async () => {
    const { endpoints } = await account.webhooks.listEndpoints({});
    expect(endpoints).toMatchObject([{ enabled: false, disabledReason: 'It answered 410 Gone.' }]);
  }, EVENTUALLY);
  const statuses = (await deliveries(to.id)).map(({ status }) => status);
  expect(statuses).toEqual(Array(30).fill(DeliveryStatus.FAILED));
  expect(to.received.length).toBeLessThan(30);
  const { rows } = await pool.query('select actor, action, subject from audit_entries order by id desc limit 1');
  expect(rows).toEqual([{ actor: 'signpost', action: 'endpoint disabled', subject: to.id }]);
});

test('five days without one success disable an endpoint; one success begins them anew', async () => {
  let status = 500;
  const to = await endpoint((_, response) => void response.writeHead(status).end());
  const failingFor = (days: number) =>
    pool.query(`update webhook_endpoints set failing_since = now() - $1 * interval '1 day'`, [days]);
  const failingSince = async () =>
    (await pool.query('select failing_since from webhook_endpoints')).rows[0].failing_since;
  const attempts = async (count: number) =>
    vi.waitFor(async () => expect((await theOnly(to.id)).attempts).toHaveLength(count), EVENTUALLY);
  await events(1);
  await failingFor(4.9);
  deliver({ lease: 600 });
  await attempts(1);
  expect((await account.webhooks.listEndpoints({})).endpoints).toMatchObject([{ enabled: true }]);
  status = 200;
  await makeDue();
  await succeeded(to.id, 1);
  await vi.waitFor(async () => expect(await failingSince()).toBeNull(), EVENTUALLY);
  status = 500;
  await account.webhooks.resendDelivery({ id: (await theOnly(to.id)).id });
  await attempts(3);
  await vi.waitFor(async () => expect(await failingSince()).not.toBeNull(), EVENTUALLY);
  await failingFor(5.1);
  // The process that holds it hears of it when it renews its lease.
  await sleep(300);
  await makeDue();
  await vi.waitFor(async () => {
    const { endpoints } = await account.webhooks.listEndpoints({});
    expect(endpoints).toMatchObject([{ enabled: false, disabledReason: 'Five days passed without one success.' }]);
  }, EVENTUALLY);
});

test('one endpoint that hangs delays no other, and what it gets at a time is bounded over all processes', async () => {
  const hanging = await endpoint(HANG);
  const healthy = await Promise.all(Array.from({ length: 4 }, () => endpoint(ACCEPT)));
  const sameHost = await account.endpoint(hanging.url);
  await events(200);
  for (let process = 0; process < 2; process++) deliver({ perEndpoint: 10 });
  await Promise.all(healthy.map(({ id }) => succeeded(id, 200)));
  for (const { received } of healthy) expect(new Set(received.map(({ id }) => id)).size).toBe(received.length);
  await vi.waitFor(() => expect(hanging.received).toHaveLength(20), EVENTUALLY);
  // Ten of each endpoint that shares the host.
  expect(hanging.mostAtOnce()).toBe(20);
  expect(await deliveries(sameHost.id)).toHaveLength(100);
});

test('while an endpoint fails it gets one request at a time, the schedule and the pace permitting, until it succeeds', async () => {
  let answer: Answering = HANG;
  const to = await endpoint((received, response) => answer(received, response));
  await pool.query('update webhook_endpoints set failing_since = now()');
  await events(100);
  deliver({ perEndpoint: 20, timeout: 500 });
  await vi.waitFor(() => expect(to.received.length).toBeGreaterThanOrEqual(2), EVENTUALLY);
  expect(to.mostAtOnce()).toBe(1);
  answer = slowly(30);
  await succeeded(to.id, 100);
  expect(to.mostAtOnce()).toBeGreaterThan(10);
});

test('a new endpoint gets test events alone until it has answered one, and then what has waited', async () => {
  let status = 500;
  const receiver = await startReceiver((_, response) => void response.writeHead(status).end());
  const id = await unverified(receiver.url);
  const sent = await events(20);
  deliver();
  for (const attempts of [1, 2]) {
    await vi.waitFor(() => expect(receiver.received).toHaveLength(attempts), EVENTUALLY);
    await sleep(1_500);
    expect(receiver.received.map(({ body }) => JSON.parse(body).type)).toEqual(Array(attempts).fill('webhook.test'));
    if (attempts === 1) await makeDue();
  }
  const { endpoints } = await account.webhooks.listEndpoints({});
  expect(endpoints).toMatchObject([{ enabled: true, failingSince: expect.anything() }]);
  expect(endpoints[0]?.verifiedAt).toBeUndefined();
  status = 204;
  await makeDue();
  await succeeded(id, 21);
  expect(new Set(receiver.received.slice(3).map((got) => got.id))).toEqual(new Set(sent));
  expect((await account.webhooks.listEndpoints({})).endpoints[0]).toMatchObject({ verifiedAt: expect.anything() });
});

test('an endpoint at another address is a new one, whatever the old address still answers', async () => {
  const before = await endpoint(slowly(1_000));
  const after = await startReceiver((_, response) => void response.writeHead(500).end());
  await events(1);
  deliver({ lease: 300 });
  await vi.waitFor(() => expect(before.received).toHaveLength(1), EVENTUALLY);
  await account.webhooks.updateEndpoint({ id: before.id, url: after.url });
  await events(5);
  await succeeded(before.id, 1);
  await vi.waitFor(() => expect(after.received).toHaveLength(1), EVENTUALLY);
  await sleep(500);
  expect(after.received.map(({ body }) => JSON.parse(body).type)).toEqual(['webhook.test']);
  expect(before.received).toHaveLength(1);
  expect((await account.webhooks.listEndpoints({})).endpoints[0]?.verifiedAt).toBeUndefined();
});

test('an endpoint whose test event has failed for good is disabled, and what waited can be sent again', async () => {
  let status = 500;
  const receiver = await startReceiver((_, response) => void response.writeHead(status).end());
  const id = await unverified(receiver.url);
  await events(3);
  await makeDue(9);
  deliver();
  const state = async () => (await account.webhooks.listEndpoints({})).endpoints[0];
  await vi.waitFor(
    async () => expect(await state()).toMatchObject({ enabled: false, disabledReason: 'Its test event failed.' }),
    EVENTUALLY,
  );
  expect((await deliveries(id)).map((each) => each.status)).toEqual(Array(4).fill(DeliveryStatus.FAILED));
  expect(receiver.received).toHaveLength(1);
  status = 204;
  await account.webhooks.updateEndpoint({ id, enabled: true });
  expect(
    (await account.webhooks.resendFailed({ endpointId: id, since: timestampFromDate(new Date(0)) })).deliveries,
  ).toBe(4);
  await succeeded(id, 5);
});

test('however many endpoints fail at one host and whatever waits for them, an account’s budget bounds the attempts', async () => {
  let answer: Answering = (_, response) => void response.writeHead(500).end();
  const host = await startReceiver((received, response) => answer(received, response));
  const ids = await Promise.all(Array.from({ length: 50 }, (_, n) => unverified(`${host.url}/${n}`)));
  await events(20);
  const stranger = await newAccount();
  for (let process = 0; process < 2; process++) deliver();
  await vi.waitFor(() => expect(host.received).toHaveLength(50), EVENTUALLY);
  for (let turn = 0; turn < 3; turn++) {
    await makeDue();
    await sleep(1_500);
  }
  // One more in every half a minute.
  expect(host.received.length).toBeLessThanOrEqual(51);
  const theirs = await unverified(`${host.url}/theirs`, stranger);
  await vi.waitFor(() => expect(host.received.at(-1)?.path).toBe('/theirs'), EVENTUALLY);
  await stranger.webhooks.deleteEndpoint({ id: theirs });

  // Nothing was lost, and it goes out when the host is back.
  answer = ACCEPT;
  await pool.query('delete from webhook_attempt_budgets');
  await makeDue();
  await sleep(1_500);
  // Some found the budget spent by the others.
  await makeDue();
  await Promise.all(ids.map((id) => succeeded(id, 21)));
}, 60_000);

test('an endpoint that begins to fail gets what was out, and then one request at growing intervals', async () => {
  let status = 500;
  const to = await endpoint((_, response) => void response.writeHead(status).end());
  await events(1_000);
  deliver({ perEndpoint: 20 });
  await vi.waitFor(async () => {
    expect((await account.webhooks.listEndpoints({})).endpoints[0]?.failingSince).toBeDefined();
  }, EVENTUALLY);
  await sleep(3_000);
  expect(to.received.length).toBeLessThanOrEqual(20);
  const wait = async () => {
    const { rows } = await pool.query<{ wait: string }>(
      'select extract(epoch from attempt_after - now()) as wait from webhook_endpoints',
    );
    return Number(rows[0]?.wait);
  };
  for (const [failing, least, most] of [
    ['10 s', 3, 5],
    ['10 min', 55, 65],
    ['2 days', 290, 300],
  ] as const) {
    const before = to.received.length;
    await pool.query('update webhook_endpoints set failing_since = now() - $1::interval', [failing]);
    await makeDue();
    await vi.waitFor(() => expect(to.received).toHaveLength(before + 1), EVENTUALLY);
    await vi.waitFor(async () => expect(await wait()).toBeGreaterThan(least), EVENTUALLY);
    expect(await wait()).toBeLessThanOrEqual(most);
  }
  status = 204;
  await makeDue();
  await succeeded(to.id, 1_000);
}, 60_000);

test('a rare failure costs an endpoint no more than its own delivery', async () => {
  let turn = 0;
  const to = await endpoint((_, response) => void response.writeHead(turn++ % 10 === 9 ? 500 : 204).end());
  await events(500);
  deliver();
  await vi.waitFor(() => expect(new Set(to.received.map(({ id }) => id)).size).toBe(500), EVENTUALLY);
});

test('several processes make each delivery once', async () => {
  const tenants = await Promise.all(Array.from({ length: 6 }, () => newAccount()));
  const receivers = await Promise.all(tenants.map((tenant) => endpoint(slowly(3), tenant)));
  for (let process = 0; process < 3; process++) deliver({ fetched: 7 });
  const sent = await Promise.all(tenants.map(async (tenant) => [await events(60, tenant), await events(60, tenant)]));
  await Promise.all(receivers.map(({ id }) => succeeded(id, 120)));
  for (const [index, { received }] of receivers.entries()) {
    expect(received.map(({ id }) => id).sort()).toEqual(sent[index]?.flat().sort());
  }
});

test('after a process was killed another one delivers the rest; what comes twice has the same id', async () => {
  const to = await endpoint(slowly(30));
  const sent = await events(300);
  const lease = 1_500;
  const child = fork(join(import.meta.dirname, 'deliverer-process.fixture.ts'), [url, secretKey, `${lease}`], {
    execArgv: [],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await vi.waitFor(() => expect(to.received.length).toBeGreaterThan(50), EVENTUALLY);
  child.kill('SIGKILL');
  await once(child, 'exit');
  const before = to.received.length;
  deliver({ lease });
  await succeeded(to.id, 300);
  expect(new Set(to.received.map(({ id }) => id))).toEqual(new Set(sent));
  expect(before).toBeLessThan(300);
  const times = [...Map.groupBy(to.received, ({ id }) => id).values()].map(({ length }) => length);
  expect(Math.max(...times)).toBeLessThanOrEqual(2);
});

test('a process that is stopped gives back what it has not finished: the next one sends it at once', async () => {
  let answer: Answering = HANG;
  const to = await endpoint((received, response) => answer(received, response));
  await events(30);
  const first = deliver({ perEndpoint: 10 });
  await vi.waitFor(() => expect(to.received).toHaveLength(10), EVENTUALLY);
  await first.stop();
  expect((await deliveries(to.id)).flatMap(({ attempts }) => attempts)).toEqual([]);
  answer = ACCEPT;
  deliver();
  await succeeded(to.id, 30);
});

test('during a rotation both secrets verify, afterwards the new one alone', async () => {
  const to = await endpoint(ACCEPT);
  const { secret } = await account.webhooks.rotateSecret({ id: to.id });
  const verifying = () => {
    const { body = '', headers = {} } = to.received.at(-1) ?? {};
    return [to.secret, secret].map((each) => {
      try {
        return Boolean(new Webhook(each).verify(body, headers as Record<string, string>));
      } catch {
        return false;
      }
    });
  };
  deliver({ lease: 300 });
  await events(1);
  await succeeded(to.id, 1);
  expect(verifying()).toEqual([true, true]);
  await pool.query(`update webhook_endpoints set former_until = now() - interval '1 s'`);
  await sleep(300);
  await events(1);
  await succeeded(to.id, 2);
  expect(verifying()).toEqual([false, true]);
});

test('an endpoint that is switched off or removed gets nothing more from the process that holds it', async () => {
  const off = await endpoint(slowly(20));
  const removed = await endpoint(slowly(20));
  await events(300);
  deliver({ perEndpoint: 1, lease: 300 });
  await vi.waitFor(() => expect(removed.received.length).toBeGreaterThan(3), EVENTUALLY);
  await account.webhooks.updateEndpoint({ id: off.id, enabled: false });
  await account.webhooks.deleteEndpoint({ id: removed.id });
  await sleep(300);
  const counts = [off.received.length, removed.received.length];
  await sleep(300);
  expect([off.received.length, removed.received.length]).toEqual(counts);
});

test('an endpoint whose secret does not open gets nothing, and keeps nobody from the others', async () => {
  const locked = await endpoint(ACCEPT);
  await pool.query('update webhook_endpoints set secret = $1', [Buffer.alloc(60, 7)]);
  const to = await endpoint(ACCEPT);
  await events(1);
  deliver();
  await succeeded(to.id, 1);
  expect(locked.received).toEqual([]);
  expect((await theOnly(locked.id)).status).toBe(DeliveryStatus.PENDING);
});

test('endpoints are removed, switched off and on, tested and resent while everything is on its way to them', async () => {
  const receivers = await Promise.all(Array.from({ length: 4 }, () => endpoint(slowly(2))));
  for (let process = 0; process < 2; process++) deliver({ lease: 300 });
  let over = false;
  const sending = (async () => {
    while (!over) {
      await events(15);
      await sleep(20);
    }
  })();
  const since = timestampFromDate(new Date(0));
  for (let turn = 0; turn < 4; turn++) {
    for (const { id } of receivers) {
      await account.webhooks.updateEndpoint({ id, enabled: false });
      await account.webhooks.updateEndpoint({ id, enabled: true });
      await account.webhooks.sendTestEvent({ id });
      await account.webhooks.resendFailed({ endpointId: id, since });
    }
    const deleted = await endpoint(ACCEPT);
    await events(100);
    await vi.waitFor(() => expect(deleted.received.length).toBeGreaterThan(20), EVENTUALLY);
    await account.webhooks.deleteEndpoint({ id: deleted.id });
  }
  over = true;
  await sending;
  for (const { id } of receivers) await account.webhooks.resendFailed({ endpointId: id, since });
  await vi.waitFor(
    async () => {
      const { rows } = await pool.query(`select status, count(*) from webhook_deliveries group by 1`);
      expect(rows.map(({ status }) => status)).toEqual(['succeeded']);
    },
    { timeout: 40_000, interval: 100 },
  );
}, 90_000);

test('answers wait to be noted while somebody changes their endpoint, so that neither waits for the other', async () => {
  const to = await endpoint(slowly(300));
  await events(1);
  deliver();
  await vi.waitFor(() => expect(to.received).toHaveLength(1), EVENTUALLY);
  await ormTransaction(orm, async (em, tx) => {
    await lockEndpoint(em, account.id, decodeId('hook', to.id) ?? '');
    await sleep(700);
    const { rows } = await tx.query('select status from webhook_deliveries for update nowait');
    expect(rows).toEqual([{ status: 'pending' }]);
  });
  await succeeded(to.id, 1);
});
