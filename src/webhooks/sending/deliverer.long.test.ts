import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { pino } from 'pino';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { decodeId } from '../../../common/contract/ids.ts';
import { transaction } from '../../../common/postgres/sql.ts';
import { DeliveryStatus } from '../../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { startTcpProxy } from '../../../test/harness/tcp-proxy.ts';
import { openDatabase } from '../../db/database.ts';
import { listen, notifying } from '../../db/notifications.ts';
import { ormTransaction } from '../../db/orm-transaction.ts';
import { entities } from '../../entities.ts';
import { lockEndpoint } from '../endpoints/endpoints.ts';
import { fanOutRecords } from '../fan-out.ts';
import { ACCEPT, acceptAfter, HANG, type Receiver, type Responder, startReceiver } from '../receiver.fixture.ts';
import { newSecret } from '../signature.ts';
import { eventRecord, type Tenant, webhooksFixture } from '../webhooks.fixture.ts';
import { type DelivererOptions, startDeliverer } from './deliverer.ts';
import { unguardedConnect } from './guarded-connect.ts';

const EVENTUALLY = { timeout: 60_000, interval: 25 };
const { url, orm, pool, secretCipher, secretKey, newAccount } = await webhooksFixture();
const logger = pino({ level: 'silent' });
const notifications = listen(pool, logger);
afterAll(() => notifications.stop());

let account: Tenant;
beforeEach(async () => {
  await pool.query('truncate webhook_endpoints, webhook_attempt_budgets cascade');
  account = await newAccount();
});

function startDelivering(
  limits: DelivererOptions['limits'] = {},
  over = pool,
  log = logger,
  connect = unguardedConnect(),
) {
  const deliverer = startDeliverer({
    pool: over,
    notifications,
    secretCipher,
    connect,
    logger: log,
    limits: { graceMs: 50, ...limits },
  });
  onTestFinished(() => deliverer.stop());
  return deliverer;
}

/** Creates deliveries of so many events for the account's endpoints; returns the events' ids (`evt_…`). */
async function fanOutEvents(count: number, tenant = account): Promise<string[]> {
  const records = Array.from({ length: count }, () => eventRecord(tenant.id));
  await fanOutRecords(pool, records, logger);
  return records.map(({ headers }) => headers.ce_id ?? '');
}

/** Adds a verified endpoint on a receiver of its own. */
async function addEndpoint(respond: Responder, tenant = account): Promise<Receiver & { id: string; secret: string }> {
  const receiver = await startReceiver(respond);
  return { ...receiver, ...(await tenant.addEndpoint(receiver.url)) };
}

/** Adds an endpoint through the service, which first gets a test event; returns its id. */
async function addUnverified(url: string, tenant = account): Promise<string> {
  return (await tenant.webhooks.createEndpoint({ url, events: ['qr.created'] })).endpoint?.id ?? '';
}

async function listDeliveries(endpointId: string) {
  return (await account.webhooks.listDeliveries({ endpointId, limit: 100 })).deliveries;
}

async function onlyDelivery(endpointId: string) {
  const [delivery, ...others] = await listDeliveries(endpointId);
  if (!delivery || others.length > 0) throw new Error(`expected one delivery, with ${others.length} others`);
  return delivery;
}

const untilSucceeded = (endpointId: string, count: number) =>
  vi.waitFor(async () => {
    const { rows } = await pool.query(
      `select count(*)::integer as done from webhook_deliveries where endpoint_id = $1 and status = 'succeeded'`,
      [decodeId('hook', endpointId)],
    );
    expect(rows[0].done).toBe(count);
  }, EVENTUALLY);

/** How many recordings of results wait for the lock of an endpoint. */
const recordings = async () => {
  const { rowCount } = await pool.query(
    `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
     and query like 'select from webhook_endpoints where id = any%'`,
  );
  return rowCount;
};

/**
 * Makes all pending deliveries due now, and sets their numbers of attempts if one is given. A process that leases the
 * endpoint notices once it has released the idle endpoint, after a second.
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

/** Waits until the process that leases an endpoint has read it again for a renewal, or has released it. */
async function untilRenewed(endpointId: string): Promise<void> {
  const leasedUntil = async () => {
    const { rows } = await pool.query('select leased_until from webhook_endpoints where id = $1', [
      decodeId('hook', endpointId),
    ]);
    return rows[0].leased_until;
  };
  // The process knows what the first renewal has read when it makes the second one.
  for (let renewal = 0; renewal < 2; renewal++) {
    const before = await leasedUntil();
    const isRenewed = async () => {
      const now = await leasedUntil();
      return now === null || now !== before;
    };
    await expect.poll(isRenewed, EVENTUALLY).toBe(true);
  }
}

test('sends the stored body with a valid signature, and lists the attempt', async () => {
  const endpoint = await addEndpoint((_, response) => void response.writeHead(200).end('thanks'));
  const [id] = await fanOutEvents(1);
  startDelivering();
  await untilSucceeded(endpoint.id, 1);
  const [request] = endpoint.received;
  expect(request?.id).toBe(id);
  const verified = new Webhook(endpoint.secret).verify(request?.body ?? '', request?.headers as Record<string, string>);
  expect(verified).toMatchObject({ type: 'qr.created' });
  const delivery = await onlyDelivery(endpoint.id);
  expect(delivery).toMatchObject({ eventId: id, status: DeliveryStatus.SUCCEEDED });
  expect(delivery.nextAttemptAt).toBeUndefined();
  expect(delivery.attempts).toMatchObject([{ status: 200, response: 'thanks' }]);
});

test('a test event is sent on demand', async () => {
  const endpoint = await addEndpoint(ACCEPT);
  startDelivering();
  const { delivery } = await account.webhooks.sendTestEvent({ id: endpoint.id });
  await untilSucceeded(endpoint.id, 1);
  expect(endpoint.received).toMatchObject([{ id: delivery?.eventId }]);
  expect(JSON.parse(endpoint.received[0]?.body ?? '')).toMatchObject({
    type: 'webhook.test',
    data: { endpoint_id: endpoint.id },
  });
});

test('a failed delivery is retried with the same id and a new timestamp until it succeeds', async () => {
  let requests = 0;
  const endpoint = await addEndpoint(
    (_, response) => void response.writeHead(requests++ < 2 ? 503 : 200).end(`${requests}`),
  );
  const [id] = await fanOutEvents(1);
  startDelivering();
  for (const failures of [1, 2]) {
    await vi.waitFor(async () => expect((await onlyDelivery(endpoint.id)).attempts).toHaveLength(failures), EVENTUALLY);
    expect(await onlyDelivery(endpoint.id)).toMatchObject({ status: DeliveryStatus.PENDING });
    // Timestamps of Standard Webhooks have whole seconds. The deliverer has also released the endpoint by then.
    await sleep(1_500);
    await makeDue();
  }
  await untilSucceeded(endpoint.id, 1);
  expect(endpoint.received.map((request) => request.id)).toEqual([id, id, id]);
  expect(new Set(endpoint.received.map(({ headers }) => headers['webhook-timestamp'])).size).toBe(3);
  expect((await onlyDelivery(endpoint.id)).attempts.map(({ status, response }) => `${status} ${response}`)).toEqual([
    '503 1',
    '503 2',
    '200 3',
  ]);
});

test('a redirect is a failure', async () => {
  const target = await startReceiver();
  const endpoint = await addEndpoint((_, response) => void response.writeHead(302, { location: target.url }).end());
  await fanOutEvents(1);
  startDelivering();
  await vi.waitFor(
    async () => expect((await onlyDelivery(endpoint.id)).attempts).toMatchObject([{ status: 302 }]),
    EVENTUALLY,
  );
  expect((await onlyDelivery(endpoint.id)).status).toBe(DeliveryStatus.PENDING);
  expect(target.received).toEqual([]);
});

test.each([
  [1, 5],
  [2, 300],
  [5, 5 * 3_600],
  [9, 24 * 3_600],
])('after failure %i the next attempt is due in %i seconds, within a tenth', async (failures, seconds) => {
  const endpoint = await addEndpoint((_, response) => void response.writeHead(500).end());
  await fanOutEvents(1);
  await makeDue(failures - 1);
  const before = Date.now();
  startDelivering();
  await vi.waitFor(async () => expect((await onlyDelivery(endpoint.id)).attempts).toHaveLength(1), EVENTUALLY);
  const { nextAttemptAt } = await onlyDelivery(endpoint.id);
  const delay = Number(nextAttemptAt?.seconds) - before / 1_000;
  expect(delay).toBeGreaterThan(seconds * 0.9 - 1);
  expect(delay).toBeLessThan(seconds * 1.1 + (Date.now() - before) / 1_000 + 1);
});

test('a delivery fails for good after the tenth failure, and resending it restarts the schedule', async () => {
  let status = 500;
  const endpoint = await addEndpoint((_, response) => void response.writeHead(status).end());
  await fanOutEvents(1);
  await makeDue(9);
  startDelivering();
  await vi.waitFor(
    async () => expect((await onlyDelivery(endpoint.id)).status).toBe(DeliveryStatus.FAILED),
    EVENTUALLY,
  );
  expect((await onlyDelivery(endpoint.id)).nextAttemptAt).toBeUndefined();
  status = 200;
  await account.webhooks.resendDelivery({ id: (await onlyDelivery(endpoint.id)).id });
  await untilSucceeded(endpoint.id, 1);
  expect((await onlyDelivery(endpoint.id)).attempts.map((attempt) => attempt.status)).toEqual([500, 200]);
});

test('a 410 disables the endpoint at once, fails its pending deliveries and is audited as Signpost’s change', async () => {
  const endpoint = await addEndpoint((_, response) => void response.writeHead(410).end());
  await fanOutEvents(30);
  startDelivering({ requestsPerEndpoint: 1, queuedPerEndpoint: 3 });
  await vi.waitFor(async () => {
    const { endpoints } = await account.webhooks.listEndpoints({});
    expect(endpoints).toMatchObject([{ enabled: false, disabledReason: 'It answered 410 Gone.' }]);
  }, EVENTUALLY);
  const statuses = (await listDeliveries(endpoint.id)).map(({ status }) => status);
  expect(statuses).toEqual(Array(30).fill(DeliveryStatus.FAILED));
  expect(endpoint.received.length).toBeLessThan(30);
  const { rows } = await pool.query('select actor, action, subject from audit_entries order by id desc limit 1');
  expect(rows).toEqual([{ actor: 'signpost', action: 'endpoint disabled', subject: endpoint.id }]);
});

test('five days without a success disable an endpoint, and a success restarts the period', async () => {
  let status = 500;
  const endpoint = await addEndpoint((_, response) => void response.writeHead(status).end());
  const failingFor = (days: number) =>
    pool.query(`update webhook_endpoints set failing_since = now() - $1 * interval '1 day'`, [days]);
  const failingSince = async () =>
    (await pool.query('select failing_since from webhook_endpoints')).rows[0].failing_since;
  const untilAttempts = async (count: number) =>
    vi.waitFor(async () => expect((await onlyDelivery(endpoint.id)).attempts).toHaveLength(count), EVENTUALLY);
  await fanOutEvents(1);
  await failingFor(4.9);
  startDelivering({ leaseMs: 600 });
  await untilAttempts(1);
  expect((await account.webhooks.listEndpoints({})).endpoints).toMatchObject([{ enabled: true }]);
  status = 200;
  await makeDue();
  await untilSucceeded(endpoint.id, 1);
  await vi.waitFor(async () => expect(await failingSince()).toBeNull(), EVENTUALLY);
  status = 500;
  await account.webhooks.resendDelivery({ id: (await onlyDelivery(endpoint.id)).id });
  await untilAttempts(3);
  await vi.waitFor(async () => expect(await failingSince()).not.toBeNull(), EVENTUALLY);
  await failingFor(5.1);
  await untilRenewed(endpoint.id);
  await makeDue();
  await vi.waitFor(async () => {
    const { endpoints } = await account.webhooks.listEndpoints({});
    expect(endpoints).toMatchObject([{ enabled: false, disabledReason: 'All deliveries failed for five days.' }]);
  }, EVENTUALLY);
});

test('an endpoint that begins to fail is not disabled by a core whose clock is six days ahead', async () => {
  const endpoint = await addEndpoint((_, response) => void response.writeHead(500).end());
  await fanOutEvents(1);
  const now = Date.now();
  const clock = vi.spyOn(Date, 'now').mockImplementation(() => now + 6 * 86_400_000);
  onTestFinished(() => void clock.mockRestore());
  startDelivering();
  await vi.waitFor(async () => expect((await onlyDelivery(endpoint.id)).attempts).toHaveLength(1), EVENTUALLY);
  expect((await account.webhooks.listEndpoints({})).endpoints).toMatchObject([{ enabled: true }]);
});

test('a hanging endpoint does not delay others, and its concurrent requests are bounded across processes', async () => {
  const hanging = await addEndpoint(HANG);
  const healthy = await Promise.all(Array.from({ length: 4 }, () => addEndpoint(ACCEPT)));
  const sameHost = await account.addEndpoint(hanging.url);
  await fanOutEvents(200);
  for (let process = 0; process < 2; process++) startDelivering({ requestsPerEndpoint: 10, timeoutMs: 120_000 });
  await Promise.all(healthy.map(({ id }) => untilSucceeded(id, 200)));
  for (const { received } of healthy) expect(new Set(received.map(({ id }) => id)).size).toBe(received.length);
  await vi.waitFor(() => expect(hanging.received).toHaveLength(20), EVENTUALLY);
  // Ten for each of the two endpoints on this host.
  expect(hanging.maxConcurrent()).toBe(20);
  expect(await listDeliveries(sameHost.id)).toHaveLength(100);
});

test('beyond the concurrent requests of a process, slow endpoints leave others a share', async () => {
  const slow = await Promise.all([addEndpoint(HANG), addEndpoint(HANG)]);
  await fanOutEvents(20);
  startDelivering({ requests: 4, requestsPerEndpoint: 10, timeoutMs: 120_000 });
  await vi.waitFor(() => {
    for (const { received } of slow) expect(received.length).toBeGreaterThan(1);
  }, EVENTUALLY);
  const healthy = await addEndpoint(ACCEPT);
  await fanOutEvents(20);
  await untilSucceeded(healthy.id, 20);
  expect(slow.reduce((sum, each) => sum + each.maxConcurrent(), 0)).toBeLessThanOrEqual(8);
});

test('an attempt that this process has no file descriptor for is not made, and is repeated', async () => {
  const [working, failing] = [await addEndpoint(ACCEPT), await addEndpoint(ACCEPT)];
  await pool.query('update webhook_endpoints set failing_since = now() where id = $1', [decodeId('hook', failing.id)]);
  await fanOutEvents(1);
  const exhausted = Object.assign(new Error('connect EMFILE'), { code: 'EMFILE', syscall: 'connect' });
  const connect = unguardedConnect();
  let connections = 0;
  startDelivering({}, pool, logger, (options, callback) => {
    if (++connections > 4) connect(options, callback);
    else callback(exhausted, null);
  });
  for (const { id } of [working, failing]) {
    await untilSucceeded(id, 1);
    expect((await onlyDelivery(id)).attempts).toMatchObject([{ status: 204 }]);
  }
});

test('however many failing endpoints hang, they do not take the place of working ones', async () => {
  const hanging = await startReceiver(HANG);
  for (let nth = 0; nth < 3; nth++) await account.addEndpoint(`${hanging.url}/${nth}`);
  await pool.query('update webhook_endpoints set failing_since = now()');
  const healthy = await addEndpoint(ACCEPT);
  await fanOutEvents(1);
  startDelivering({ endpoints: 2, timeoutMs: 120_000 });
  await vi.waitFor(() => expect(hanging.received).toHaveLength(2), EVENTUALLY);
  await untilSucceeded(healthy.id, 1);
});

test('a failing endpoint gets one request at a time until one succeeds', async () => {
  let respond: Responder = HANG;
  const endpoint = await addEndpoint((received, response) => respond(received, response));
  await pool.query('update webhook_endpoints set failing_since = now()');
  await fanOutEvents(100);
  startDelivering({ requestsPerEndpoint: 20, timeoutMs: 500 });
  await vi.waitFor(() => expect(endpoint.received.length).toBeGreaterThanOrEqual(2), EVENTUALLY);
  expect(endpoint.maxConcurrent()).toBe(1);
  respond = acceptAfter(30);
  await untilSucceeded(endpoint.id, 100);
  expect(endpoint.maxConcurrent()).toBeGreaterThan(10);
});

test('a new endpoint gets only test events until one succeeds, and then its pending deliveries', async () => {
  let status = 500;
  const receiver = await startReceiver((_, response) => void response.writeHead(status).end());
  const id = await addUnverified(receiver.url);
  const sent = await fanOutEvents(20);
  startDelivering();
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
  await untilSucceeded(id, 21);
  expect(new Set(receiver.received.slice(3).map((request) => request.id))).toEqual(new Set(sent));
  expect((await account.webhooks.listEndpoints({})).endpoints[0]).toMatchObject({ verifiedAt: expect.anything() });
});

test('an endpoint with a changed URL is treated as new, whatever the former URL still responds', async () => {
  const former = await addEndpoint(acceptAfter(1_000));
  const current = await startReceiver((_, response) => void response.writeHead(500).end());
  await fanOutEvents(1);
  startDelivering({ leaseMs: 300 });
  await vi.waitFor(() => expect(former.received).toHaveLength(1), EVENTUALLY);
  await account.webhooks.updateEndpoint({ id: former.id, url: current.url });
  await fanOutEvents(5);
  await untilSucceeded(former.id, 1);
  await vi.waitFor(() => expect(current.received).toHaveLength(1), EVENTUALLY);
  await sleep(500);
  expect(current.received.map(({ body }) => JSON.parse(body).type)).toEqual(['webhook.test']);
  expect(former.received).toHaveLength(1);
  expect((await account.webhooks.listEndpoints({})).endpoints[0]?.verifiedAt).toBeUndefined();
});

test('an endpoint whose test event has finally failed is disabled, and its deliveries can be resent', async () => {
  let status = 500;
  const receiver = await startReceiver((_, response) => void response.writeHead(status).end());
  const id = await addUnverified(receiver.url);
  await fanOutEvents(3);
  await makeDue(9);
  startDelivering();
  const state = async () => (await account.webhooks.listEndpoints({})).endpoints[0];
  await vi.waitFor(
    async () => expect(await state()).toMatchObject({ enabled: false, disabledReason: 'Its test event failed.' }),
    EVENTUALLY,
  );
  expect((await listDeliveries(id)).map((each) => each.status)).toEqual(Array(4).fill(DeliveryStatus.FAILED));
  expect(receiver.received).toHaveLength(1);
  status = 204;
  await account.webhooks.updateEndpoint({ id, enabled: true });
  expect(
    (await account.webhooks.resendFailed({ endpointId: id, since: timestampFromDate(new Date(0)) })).deliveries,
  ).toBe(4);
  await untilSucceeded(id, 5);
});

test('an endpoint with a host longer than any name does not keep others from being sent', async () => {
  const character = () => String.fromCodePoint(0x4e00 + Math.floor(Math.random() * 20_000));
  const labels = Array.from({ length: 680 }, () => character() + character());
  const { id } = await account.addEndpoint(`https://${labels.join('.')}.com/`);
  await pool.query('update webhook_endpoints set verified_at = null');
  await account.webhooks.sendTestEvent({ id });
  const tenant = await newAccount();
  const other = await startReceiver(ACCEPT);
  await addUnverified(other.url, tenant);
  startDelivering();
  await vi.waitFor(() => expect(other.received).toHaveLength(1), EVENTUALLY);
});

test('deliveries that exceed the memory for all are sent all the same', async () => {
  const [one, other] = [await addEndpoint(ACCEPT), await addEndpoint(acceptAfter(20))];
  await fanOutEvents(20);
  startDelivering({ bytes: 1, bytesPerEndpoint: 1 });
  await Promise.all([untilSucceeded(one.id, 20), untilSucceeded(other.id, 20)]);
});

test('an account’s budget bounds the attempts to a host, however many endpoints and deliveries fail there', async () => {
  let respond: Responder = (_, response) => void response.writeHead(500).end();
  const host = await startReceiver((received, response) => respond(received, response));
  const ids = await Promise.all(Array.from({ length: 50 }, (_, n) => addUnverified(`${host.url}/${n}`)));
  await fanOutEvents(20);
  const otherAccount = await newAccount();
  for (let process = 0; process < 2; process++) startDelivering();
  await vi.waitFor(() => expect(host.received).toHaveLength(50), EVENTUALLY);
  for (let round = 0; round < 3; round++) {
    await makeDue();
    await sleep(1_500);
  }
  // The budget regains one attempt every 30 seconds.
  expect(host.received.length).toBeLessThanOrEqual(51);
  const otherEndpoint = await addUnverified(`${host.url}/other`, otherAccount);
  await vi.waitFor(() => expect(host.received.at(-1)?.path).toBe('/other'), EVENTUALLY);
  await otherAccount.webhooks.deleteEndpoint({ id: otherEndpoint });

  // No delivery was lost: all are sent once the host responds again.
  respond = ACCEPT;
  await pool.query('delete from webhook_attempt_budgets');
  await makeDue();
  await sleep(1_500);
  // For some endpoints the others had left no budget.
  await makeDue();
  await Promise.all(ids.map((id) => untilSucceeded(id, 21)));
  // Attempts that succeed are refunded.
  await vi.waitFor(async () => {
    const spent = await pool.query('select from webhook_attempt_budgets where spent_until > now()');
    expect(spent.rowCount).toBe(0);
  }, EVENTUALLY);
});

test('after its first failures an endpoint gets one request at a time, at growing intervals', async () => {
  let status = 500;
  const endpoint = await addEndpoint((_, response) => void response.writeHead(status).end());
  await fanOutEvents(1_000);
  startDelivering({ requestsPerEndpoint: 20 });
  await vi.waitFor(async () => {
    expect((await account.webhooks.listEndpoints({})).endpoints[0]?.failingSince).toBeDefined();
  }, EVENTUALLY);
  // The next one is due after 5 s.
  await sleep(1_000);
  expect(endpoint.received.length).toBeLessThanOrEqual(20);
  const wait = async () => {
    const { rows } = await pool.query<{ wait: string }>(
      'select extract(epoch from attempt_after - now()) as wait from webhook_endpoints',
    );
    return Number(rows[0]?.wait);
  };
  for (const [failingFor, min, max] of [
    ['10 s', 3, 5],
    ['10 min', 55, 65],
    ['2 days', 290, 300],
  ] as const) {
    const before = endpoint.received.length;
    await pool.query('update webhook_endpoints set failing_since = now() - $1::interval', [failingFor]);
    await makeDue();
    await vi.waitFor(() => expect(endpoint.received).toHaveLength(before + 1), EVENTUALLY);
    await vi.waitFor(async () => expect(await wait()).toBeGreaterThan(min), EVENTUALLY);
    expect(await wait()).toBeLessThanOrEqual(max);
  }
  status = 204;
  await makeDue();
  await untilSucceeded(endpoint.id, 1_000);
});

test('an occasional failure delays only its own delivery', async () => {
  let requests = 0;
  const endpoint = await addEndpoint((_, response) => void response.writeHead(requests++ % 10 === 9 ? 500 : 204).end());
  await fanOutEvents(500);
  startDelivering();
  await vi.waitFor(() => expect(new Set(endpoint.received.map(({ id }) => id)).size).toBe(500), EVENTUALLY);
});

test('several processes send each delivery once', async () => {
  const tenants = await Promise.all(Array.from({ length: 6 }, () => newAccount()));
  const receivers = await Promise.all(tenants.map((tenant) => addEndpoint(acceptAfter(3), tenant)));
  for (let process = 0; process < 3; process++) startDelivering({ queuedPerEndpoint: 7 });
  const sent = await Promise.all(
    tenants.map(async (tenant) => [await fanOutEvents(60, tenant), await fanOutEvents(60, tenant)]),
  );
  await Promise.all(receivers.map(({ id }) => untilSucceeded(id, 120)));
  for (const [index, { received }] of receivers.entries()) {
    expect(received.map(({ id }) => id).sort()).toEqual(sent[index]?.flat().sort());
  }
});

test('another process takes over from a killed one; deliveries sent twice have the same id', async () => {
  const endpoint = await addEndpoint(acceptAfter(30));
  const sent = await fanOutEvents(300);
  const leaseMs = 1_500;
  const child = fork(join(import.meta.dirname, 'deliverer-process.fixture.ts'), [url, secretKey, `${leaseMs}`], {
    execArgv: [],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await vi.waitFor(() => expect(endpoint.received.length).toBeGreaterThan(50), EVENTUALLY);
  child.kill('SIGKILL');
  await once(child, 'exit');
  const before = endpoint.received.length;
  startDelivering({ leaseMs });
  await untilSucceeded(endpoint.id, 300);
  expect(new Set(endpoint.received.map(({ id }) => id))).toEqual(new Set(sent));
  expect(before).toBeLessThan(300);
  const times = [...Map.groupBy(endpoint.received, ({ id }) => id).values()].map(({ length }) => length);
  expect(Math.max(...times)).toBeLessThanOrEqual(2);
});

test('a stopped process releases its endpoints: the next one sends their unfinished deliveries at once', async () => {
  let respond: Responder = HANG;
  const endpoint = await addEndpoint((received, response) => respond(received, response));
  await fanOutEvents(30);
  const first = startDelivering({ requestsPerEndpoint: 10 });
  await vi.waitFor(() => expect(endpoint.received).toHaveLength(10), EVENTUALLY);
  await first.stop();
  expect((await listDeliveries(endpoint.id)).flatMap(({ attempts }) => attempts)).toEqual([]);
  respond = ACCEPT;
  startDelivering();
  await untilSucceeded(endpoint.id, 30);
});

test('every secret verifies until a day after its rotation, also if others follow, and only the new one afterwards', async () => {
  const endpoint = await addEndpoint(ACCEPT);
  const uuid = decodeId('hook', endpoint.id) ?? '';
  const second = newSecret();
  // As a core of release 1.0 rotates it.
  await pool.query(
    `update webhook_endpoints set secret = $2, former_secret = secret, former_until = now() + interval '24 hours' where id = $1`,
    [uuid, secretCipher.encrypt(uuid, second)],
  );
  const { secret: third } = await account.webhooks.rotateSecret({ id: endpoint.id });
  const verifications = () => {
    const { body = '', headers = {} } = endpoint.received.at(-1) ?? {};
    return [endpoint.secret, second, third].map((each) => {
      try {
        return Boolean(new Webhook(each).verify(body, headers as Record<string, string>));
      } catch {
        return false;
      }
    });
  };
  startDelivering({ leaseMs: 300 });
  await fanOutEvents(1);
  await untilSucceeded(endpoint.id, 1);
  expect(verifications()).toEqual([true, true, true]);
  await pool.query(`update webhook_endpoints set older_until = array[now() - interval '1 s']`);
  await untilRenewed(endpoint.id);
  await fanOutEvents(1);
  await untilSucceeded(endpoint.id, 2);
  expect(verifications()).toEqual([false, true, true]);
  await pool.query(`update webhook_endpoints set former_until = now() - interval '1 s'`);
  await untilRenewed(endpoint.id);
  await fanOutEvents(1);
  await untilSucceeded(endpoint.id, 3);
  expect(verifications()).toEqual([false, false, true]);
});

test('both secrets sign an event after a rotation, also in the process that leases the endpoint', async () => {
  const answer = Promise.withResolvers<void>();
  const endpoint = await addEndpoint(async (_, response) => {
    await answer.promise;
    response.writeHead(204).end();
  });
  await fanOutEvents(1);
  startDelivering();
  await vi.waitFor(() => expect(endpoint.received).toHaveLength(1), EVENTUALLY);
  const { secret } = await account.webhooks.rotateSecret({ id: endpoint.id });
  await fanOutEvents(1);
  await vi.waitFor(() => expect(endpoint.received).toHaveLength(2), EVENTUALLY);
  answer.resolve();
  const { body = '', headers } = endpoint.received[1] ?? {};
  for (const each of [endpoint.secret, secret]) {
    expect(() => new Webhook(each).verify(body, headers as Record<string, string>)).not.toThrow();
  }
});

test('an endpoint that is disabled or removed gets nothing more from the process that leases it', async () => {
  const disabled = await addEndpoint(acceptAfter(20));
  const removed = await addEndpoint(acceptAfter(20));
  const kept = await addEndpoint(acceptAfter(20));
  await fanOutEvents(300);
  startDelivering({ requestsPerEndpoint: 1, leaseMs: 300 });
  await vi.waitFor(() => expect(removed.received.length).toBeGreaterThan(3), EVENTUALLY);
  await account.webhooks.updateEndpoint({ id: disabled.id, enabled: false });
  await account.webhooks.deleteEndpoint({ id: removed.id });
  // The renewal that renews this lease finds that the others are not leased any more.
  await untilRenewed(kept.id);
  const counts = [disabled.received.length, removed.received.length];
  await sleep(300);
  expect([disabled.received.length, removed.received.length]).toEqual(counts);
});

test('an endpoint whose secret cannot be decrypted gets nothing until it is rotated, and does not block others', async () => {
  const unreadable = await addEndpoint(ACCEPT);
  await pool.query('update webhook_endpoints set secret = $1', [Buffer.alloc(60, 7)]);
  const endpoint = await addEndpoint(ACCEPT);
  await fanOutEvents(1);
  startDelivering({ leaseMs: 300, endpoints: 1 });
  await untilSucceeded(endpoint.id, 1);
  expect(unreadable.received).toEqual([]);
  expect((await onlyDelivery(unreadable.id)).status).toBe(DeliveryStatus.PENDING);
  const { secret } = await account.webhooks.rotateSecret({ id: unreadable.id });
  await untilSucceeded(unreadable.id, 1);
  const [{ body, headers } = { body: '', headers: {} }] = unreadable.received;
  expect(() => new Webhook(secret).verify(body, headers as Record<string, string>)).not.toThrow();
});

test('once its secret cannot be decrypted, an endpoint gets nothing more of what was fetched for it', async () => {
  const { promise: answer, resolve: respond } = Promise.withResolvers<void>();
  const endpoint = await addEndpoint((_, response) => answer.then(() => void response.writeHead(204).end()));
  await fanOutEvents(20);
  const logged = vi.fn();
  startDelivering({ requestsPerEndpoint: 1, leaseMs: 300 }, pool, pino({}, { write: logged }));
  await vi.waitFor(() => expect(endpoint.received).toHaveLength(1), EVENTUALLY);
  await pool.query('update webhook_endpoints set secret = $1', [Buffer.alloc(60, 7)]);
  await vi.waitFor(
    () => expect(logged).toHaveBeenCalledWith(expect.stringContaining('can’t be decrypted')),
    EVENTUALLY,
  );
  respond();
  await untilSucceeded(endpoint.id, 1);
  const other = await addEndpoint(ACCEPT);
  await fanOutEvents(1);
  await untilSucceeded(other.id, 1);
  expect(endpoint.received.map(({ headers }) => headers['webhook-signature'])).toEqual([expect.stringMatching(/^v1,/)]);
  const statuses = (await listDeliveries(endpoint.id)).map(({ status }) => status);
  expect(statuses.filter((status) => status === DeliveryStatus.PENDING)).toHaveLength(20);
});

test('removing, disabling, enabling, testing and resending during deliveries causes no deadlocks', async () => {
  const receivers = await Promise.all(Array.from({ length: 4 }, () => addEndpoint(acceptAfter(2))));
  for (let process = 0; process < 2; process++) startDelivering({ leaseMs: 300 });
  let stopped = false;
  const sending = (async () => {
    while (!stopped) {
      await fanOutEvents(15);
      await sleep(20);
    }
  })();
  const since = timestampFromDate(new Date(0));
  for (let round = 0; round < 4; round++) {
    for (const { id } of receivers) {
      await account.webhooks.updateEndpoint({ id, enabled: false });
      await account.webhooks.updateEndpoint({ id, enabled: true });
      await account.webhooks.sendTestEvent({ id });
      await account.webhooks.resendFailed({ endpointId: id, since });
    }
    const deleted = await addEndpoint(ACCEPT);
    await fanOutEvents(100);
    await vi.waitFor(() => expect(deleted.received.length).toBeGreaterThan(20), EVENTUALLY);
    await account.webhooks.deleteEndpoint({ id: deleted.id });
  }
  stopped = true;
  await sending;
  for (const { id } of receivers) await account.webhooks.resendFailed({ endpointId: id, since });
  await vi.waitFor(
    async () => {
      const { rows } = await pool.query(`select status, count(*) from webhook_deliveries group by 1`);
      expect(rows.map(({ status }) => status)).toEqual(['succeeded']);
    },
    { timeout: 40_000, interval: 100 },
  );
});

test('recording results locks the endpoint before its deliveries, so that it cannot deadlock with a change', async () => {
  const answer = Promise.withResolvers<void>();
  const endpoint = await addEndpoint(async (_, response) => {
    await answer.promise;
    response.writeHead(204).end();
  });
  await fanOutEvents(1);
  startDelivering();
  await vi.waitFor(() => expect(endpoint.received).toHaveLength(1), EVENTUALLY);
  await ormTransaction(orm, async (em, tx) => {
    await lockEndpoint(em, account.id, decodeId('hook', endpoint.id) ?? '');
    answer.resolve();
    await vi.waitFor(async () => expect(await recordings()).toBe(1), EVENTUALLY);
    const { rows } = await tx.query('select status from webhook_deliveries for update nowait');
    expect(rows).toEqual([{ status: 'pending' }]);
  });
  await untilSucceeded(endpoint.id, 1);
});

test('attempts that complete while none can be recorded, more than fit into a transaction, are recorded once each', async () => {
  const endpoints = await Promise.all(Array.from({ length: 10 }, () => addEndpoint(ACCEPT)));
  await fanOutEvents(150);
  const received = () => endpoints.reduce((sum, endpoint) => sum + endpoint.received.length, 0);
  await transaction(pool, async (tx) => {
    startDelivering();
    await vi.waitFor(() => expect(received()).toBeGreaterThan(0), EVENTUALLY);
    await tx.query('select from webhook_endpoints order by id for no key update');
    await vi.waitFor(() => expect(received()).toBeGreaterThan(1_200), EVENTUALLY);
  });
  for (const { id } of endpoints) await untilSucceeded(id, 150);
  expect(received()).toBe(1_500);
  expect((await pool.query('select from webhook_attempts')).rowCount).toBe(1_500);
});

test('a process that cannot reach Postgres sends nothing more once its lease has ended, and continues with the next', async () => {
  const postgres = await startTcpProxy(url);
  const behindProxy = await openDatabase(postgres.url, 4, entities);
  onTestFinished(() => behindProxy.close());
  const endpoint = await addEndpoint(acceptAfter(50));
  await fanOutEvents(150);
  startDelivering({ leaseMs: 1_000, requestsPerEndpoint: 1 }, behindProxy.pool);
  await vi.waitFor(() => expect(endpoint.received.length).toBeGreaterThan(0), EVENTUALLY);
  postgres.cut();
  // All that was fetched would be sent within 8 s.
  await sleep(10_000);
  const sent = endpoint.received.length;
  expect(sent).toBeLessThan(150);
  await sleep(500);
  expect(endpoint.received).toHaveLength(sent);
  postgres.restore();
  await untilSucceeded(endpoint.id, 150);
  expect(endpoint.received).toHaveLength(150);
});

test('an attempt that was being recorded when Postgres vanished is recorded on another connection', async () => {
  const postgres = await startTcpProxy(url);
  const behindProxy = await openDatabase(postgres.url, 4, entities);
  onTestFinished(() => behindProxy.close());
  const answer = Promise.withResolvers<void>();
  const endpoint = await addEndpoint(async (_, response) => {
    await answer.promise;
    response.writeHead(204).end();
  });
  await fanOutEvents(1);
  startDelivering({}, behindProxy.pool);
  await vi.waitFor(() => expect(endpoint.received).toHaveLength(1), EVENTUALLY);
  await transaction(pool, async (tx) => {
    await tx.query('select from webhook_endpoints for no key update');
    answer.resolve();
    await vi.waitFor(async () => expect(await recordings()).toBe(1), EVENTUALLY);
    postgres.vanish();
  });
  await vi.waitFor(async () => expect((await onlyDelivery(endpoint.id)).attempts).toHaveLength(1), {
    timeout: 60_000,
    interval: 100,
  });
  expect((await onlyDelivery(endpoint.id)).status).toBe(DeliveryStatus.SUCCEEDED);
  expect(endpoint.received).toHaveLength(1);
});
