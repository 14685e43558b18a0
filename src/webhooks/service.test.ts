import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { ConnectError } from '@connectrpc/connect';
import { pino } from 'pino';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { EVENT_TYPES } from '../../common/contract/event-types.ts';
import { decodeId, encodeId, newUuid } from '../../common/contract/ids.ts';
import { byIndex, run, transaction } from '../../common/postgres/sql.ts';
import { DeliveryStatus } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { statementsOf } from '../db/statements.fixture.ts';
import { deleteAccountEndpoints } from './endpoints/delete-endpoint.ts';
import { finishEndpoints } from './endpoints/finish-endpoints.ts';
import { fanOutRecords } from './fan-out.ts';
import { queueOf } from './sending/queue.ts';
import { eventRecord, type Tenant, webhooksFixture } from './webhooks.fixture.ts';

const URL = 'https://hooks.example.com/signpost?shop=4';
const { pool, secretCipher, newAccount } = await webhooksFixture();

let account: Tenant;
beforeEach(async () => {
  account = await newAccount({ allowPrivate: false });
});

async function create(events: readonly string[] = ['qr.created'], tenant = account) {
  const { endpoint, secret } = await tenant.webhooks.createEndpoint({ url: URL, events: [...events] });
  if (!endpoint) throw new Error('no endpoint was created');
  // The initial test event has a test of its own.
  await pool.query('delete from webhook_deliveries where endpoint_id = $1', [decodeId('hook', endpoint.id)]);
  await pool.query('update webhook_endpoints set due_at = null where id = $1', [decodeId('hook', endpoint.id)]);
  return { ...endpoint, secret };
}

/** Whether each endpoint of the account is due, in the order of their creation. */
async function due(): Promise<boolean[]> {
  const { rows } = await pool.query<{ due: boolean }>(
    'select coalesce(due_at <= now(), false) as due from webhook_endpoints where account_id = $1 order by id',
    [account.id],
  );
  return rows.map((row) => row.due);
}

/** Adds so many pending deliveries that the endpoint is not due for. */
async function addPending(endpoint: string, deliveries: number): Promise<void> {
  await pool.query(
    `insert into webhook_deliveries (id, endpoint_id, account_id, event_id, event_type, body)
     select uuidv7(), $1, $2, uuidv7(), 'qr.created', '{}' from generate_series(1, $3::integer)`,
    [decodeId('hook', endpoint), account.id, deliveries],
  );
}

/** The number of deliveries of an endpoint that fulfil a condition. */
async function count(endpoint: string, condition: string): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    `select count(*)::integer as count from webhook_deliveries where endpoint_id = $1 and ${condition}`,
    [decodeId('hook', endpoint)],
  );
  return rows[0]?.count ?? 0;
}

/** Finishes disabled and deleted endpoints, as two processes at once and then another one do. */
async function finish(): Promise<void> {
  const { signal } = new AbortController();
  await Promise.all([finishEndpoints(pool, signal), finishEndpoints(pool, signal)]);
  await finishEndpoints(pool, signal);
}

async function rejection(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => new Error('the call was not rejected'),
    (thrown: unknown) => thrown,
  );
  const { reason, message } = readFailure(error);
  return error instanceof ConnectError ? `${reason} ${message}` : String(error);
}

/** The plan of a statement that `work` runs in its only transaction. */
async function planOf(name: string, work: () => Promise<unknown>): Promise<string> {
  const calls = await statementsOf(work);
  const planned = calls.find((each) => each.name === name);
  return transaction(pool, async (tx) => {
    if (calls.some((each) => each.name === byIndex.name)) await run(tx, byIndex);
    const { rows } = await tx.query<{ 'QUERY PLAN': string }>(`explain (costs off) ${planned?.text}`, planned?.values);
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  });
}

/** Expects that no call of the account finds an endpoint and a delivery. */
async function expectUnknown(endpoint: string, delivery: string): Promise<void> {
  const { webhooks } = account;
  for (const call of [
    () => webhooks.updateEndpoint({ id: endpoint, enabled: false }),
    () => webhooks.deleteEndpoint({ id: endpoint }),
    () => webhooks.rotateSecret({ id: endpoint }),
    () => webhooks.sendTestEvent({ id: endpoint }),
    () => webhooks.listDeliveries({ endpointId: endpoint }),
    () => webhooks.resendFailed({ endpointId: endpoint, since: timestampFromDate(new Date(0)) }),
  ]) {
    expect(await rejection(call())).toBe('NOT_FOUND There is no such webhook endpoint on this account.');
  }
  for (const call of [
    () => webhooks.resendDelivery({ id: delivery }),
    () => webhooks.listAttempts({ deliveryId: delivery }),
  ]) {
    expect(await rejection(call())).toBe('NOT_FOUND There is no such delivery on this account.');
  }
}

async function auditLog(): Promise<string[]> {
  const { rows } = await pool.query<{ actor: string; action: string; subject: string }>(
    'select actor, action, subject from audit_entries where account_id = $1 order by id',
    [account.id],
  );
  return rows.map(({ actor, action, subject }) => `${actor}: ${action.split('/')[1]} ${subject}`);
}

/** Adds a delivery of an event in a given state; returns its id. */
async function addDelivery(endpoint: string, status: 'pending' | 'succeeded' | 'failed', age = '0 s'): Promise<string> {
  const id = newUuid();
  await pool.query(
    `insert into webhook_deliveries
       (id, endpoint_id, account_id, event_id, event_type, body, status, attempts, next_attempt_at, created_at)
     select $1, $2, account_id, $3, 'qr.created', '{}', $4, 3, case when $4 = 'pending' then now() + '1 h' end,
            now() - $5::interval
     from webhook_endpoints where id = $2`,
    [id, decodeId('hook', endpoint), newUuid(), status, age],
  );
  return encodeId('dlv', id);
}

describe('endpoints', () => {
  test('endpoints are created and listed newest first; only creation returns the secret', async () => {
    const first = await create();
    const second = await create(EVENT_TYPES);
    expect(first).toMatchObject({ url: URL, events: ['qr.created'], enabled: true, disabledReason: '' });
    expect(first.id).toMatch(/^hook_/);
    expect(first.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(second.secret).not.toBe(first.secret);
    const { endpoints } = await account.webhooks.listEndpoints({});
    expect(endpoints.map(({ id }) => id)).toEqual([second.id, first.id]);
    expect(JSON.stringify(endpoints, (_, value) => (typeof value === 'bigint' ? `${value}` : value))).not.toContain(
      'whsec_',
    );
    expect(await auditLog()).toEqual([`a test: CreateEndpoint ${first.id}`, `a test: CreateEndpoint ${second.id}`]);
  });

  test('the database stores no secret in plaintext, and a secret copied to another row can’t be decrypted', async () => {
    const { id, secret } = await create();
    const { rows } = await pool.query<{ secret: Buffer; whole: string }>(
      'select secret, e::text as whole from webhook_endpoints e where account_id = $1',
      [account.id],
    );
    const [row] = rows;
    if (!row) throw new Error('no row');
    expect(row.whole).not.toContain(secret);
    expect(Buffer.concat([row.secret]).includes(Buffer.from(secret.slice(6), 'base64'))).toBe(false);
    expect(secretCipher.decrypt(decodeId('hook', id) ?? '', row.secret)).toBe(secret);
    expect(() => secretCipher.decrypt(newUuid(), row.secret)).toThrow();
  });

  test.each([
    [' ', 'url: is required.'],
    ['http://example.com/', 'url: must be an https URL.'],
    ['ftp://example.com/', 'url: must be an absolute http or https URL.'],
    ['example.com', 'url: must be an absolute http or https URL.'],
    ['https:example.com', 'url: must be an absolute http or https URL.'],
    ['https://exa mple.com/', 'url: must be an absolute http or https URL.'],
    ['https://a..b/', 'url: must have a host that can be looked up.'],
    ['https://me:secret@example.com/', 'url: must not carry a user name or password.'],
    ['https://localhost/', 'url: must be an address on the public Internet.'],
    ['https://a.localhost.:8443/', 'url: must be an address on the public Internet.'],
    ['https://127.1/', 'url: must be an address on the public Internet.'],
    ['https://0x7f000001/', 'url: must be an address on the public Internet.'],
    ['https://[::ffff:10.0.0.1]/', 'url: must be an address on the public Internet.'],
    ['https://169.254.169.254/latest', 'url: must be an address on the public Internet.'],
    [`https://${'例え.'.repeat(30)}com/`, 'url: must have a host that can be looked up.'],
  ])('%s is rejected', async (url, sentence) => {
    const { id } = await create();
    expect(await rejection(account.webhooks.createEndpoint({ url, events: ['qr.created'] }))).toBe(
      `INVALID_FIELD ${sentence}`,
    );
    expect(await rejection(account.webhooks.updateEndpoint({ id, url }))).toBe(`INVALID_FIELD ${sentence}`);
    expect((await account.webhooks.listEndpoints({})).endpoints).toMatchObject([{ id, url: URL }]);
  });

  test('http is allowed where private addresses are', async () => {
    const { webhooks } = await newAccount({ allowPrivate: true });
    const url = 'http://localhost:3000/hook';
    expect((await webhooks.createEndpoint({ url, events: ['qr.created'] })).endpoint?.url).toBe(url);
  });

  test('an unknown event type is rejected with a list of the known ones', async () => {
    const sentence = `INVALID_FIELD events: each must be one of ${EVENT_TYPES.join(', ')}.`;
    expect(await rejection(create(['qr.created', 'qr.scanned']))).toBe(sentence);
  });

  test('a request that violates a constraint is rejected and changes nothing', async () => {
    const { webhooks } = account;
    const { id } = await create();
    const duplicates = ['qr.created', 'qr.created'];
    expect(await rejection(webhooks.createEndpoint({ url: '', events: ['qr.created'] }))).toMatch(
      /^INVALID_FIELD url: /,
    );
    for (const call of [
      webhooks.createEndpoint({ url: URL, events: [] }),
      webhooks.createEndpoint({ url: URL, events: duplicates }),
      webhooks.updateEndpoint({ id, events: duplicates }),
    ]) {
      expect(await rejection(call)).toMatch(/^INVALID_FIELD events: /);
    }
    for (const since of [{}, { since: { seconds: -6_200_000_000_000n } }]) {
      expect(await rejection(webhooks.resendFailed({ endpointId: id, ...since }))).toMatch(/^INVALID_FIELD since: /);
    }
    expect((await webhooks.listEndpoints({})).endpoints).toMatchObject([{ id, url: URL, events: ['qr.created'] }]);
    expect(await auditLog()).toHaveLength(1);
  });

  test('an update changes the fields it sets; one without effect is not recorded in the audit log', async () => {
    const { id } = await create();
    const url = 'https://other.example.com/';
    const changed = await account.webhooks.updateEndpoint({ id, url, events: ['bulk.completed', 'qr.updated'] });
    expect(changed.endpoint).toMatchObject({ id, url, events: ['bulk.completed', 'qr.updated'], enabled: true });
    const same = await account.webhooks.updateEndpoint({ id, url, events: ['qr.updated', 'bulk.completed'] });
    expect(same.endpoint).toEqual(changed.endpoint);
    expect(await auditLog()).toHaveLength(2);
  });

  test('a test event is sent to a new endpoint, and again when its URL changes or it is enabled again', async () => {
    const { webhooks } = account;
    const { endpoint } = await webhooks.createEndpoint({ url: URL, events: ['qr.created'] });
    const id = endpoint?.id ?? '';
    const pendingTests = async () => {
      const { deliveries } = await webhooks.listDeliveries({ endpointId: id, status: DeliveryStatus.PENDING });
      expect(deliveries.every(({ eventType }) => eventType === 'webhook.test')).toBe(true);
      return deliveries.length;
    };
    const verify = async () => {
      await pool.query(
        `update webhook_endpoints set verified_at = now(), failing_since = now() - interval '6 days',
           attempt_after = now() + interval '5 min', due_at = null
         where id = $1`,
        [decodeId('hook', id)],
      );
      await pool.query('delete from webhook_deliveries where endpoint_id = $1', [decodeId('hook', id)]);
      const { endpoints } = await webhooks.listEndpoints({});
      expect(endpoints[0]?.verifiedAt).toBeDefined();
    };
    expect(endpoint?.verifiedAt).toBeUndefined();
    expect(await pendingTests()).toBe(1);
    await verify();
    expect((await webhooks.updateEndpoint({ id, events: ['qr.updated'] })).endpoint?.verifiedAt).toBeDefined();
    expect(await pendingTests()).toBe(0);
    const { endpoint: moved } = await webhooks.updateEndpoint({ id, url: `${URL}&a=b` });
    expect([moved?.verifiedAt, moved?.failingSince, await due()]).toEqual([undefined, undefined, [true]]);
    expect(await pendingTests()).toBe(1);
    await verify();
    expect((await webhooks.updateEndpoint({ id, enabled: false, url: URL })).endpoint?.verifiedAt).toBeUndefined();
    expect(await pendingTests()).toBe(0);
    await webhooks.updateEndpoint({ id, enabled: true });
    expect(await pendingTests()).toBe(1);
  });

  test('disabling an endpoint fails its pending deliveries, and rejects tests and resends until it is enabled', async () => {
    const [{ id }, other] = [await create(), await create()];
    const [pending, delivered] = [await addDelivery(id, 'pending'), await addDelivery(id, 'succeeded')];
    await addDelivery(other.id, 'pending');
    const off = await account.webhooks.updateEndpoint({ id, enabled: false });
    expect(off.endpoint).toMatchObject({ enabled: false, disabledReason: 'It was switched off.' });
    const { deliveries } = await account.webhooks.listDeliveries({ endpointId: id });
    expect(deliveries.map((each) => [each.id, each.status])).toEqual([
      [delivered, DeliveryStatus.SUCCEEDED],
      [pending, DeliveryStatus.FAILED],
    ]);
    const others = await account.webhooks.listDeliveries({ endpointId: other.id });
    expect(others.deliveries).toMatchObject([{ status: DeliveryStatus.PENDING }]);
    const disabled = (subject: string) => `INVALID_FIELD ${subject} is disabled; enable it first.`;
    expect(await rejection(account.webhooks.sendTestEvent({ id }))).toBe(disabled('id: this endpoint'));
    const resent = account.webhooks.resendDelivery({ id: pending });
    expect(await rejection(resent)).toBe(disabled('id: the endpoint of this delivery'));
    const since = timestampFromDate(new Date(0));
    const all = account.webhooks.resendFailed({ endpointId: id, since });
    expect(await rejection(all)).toBe(disabled('endpoint_id: this endpoint'));
    const on = await account.webhooks.updateEndpoint({ id, enabled: true });
    expect(on.endpoint).toMatchObject({ enabled: true, disabledReason: '' });
    expect((await account.webhooks.resendFailed({ endpointId: id, since })).deliveries).toBe(1);
  });

  test('of thousands of pending deliveries of a disabled endpoint none is sent, and all fail, at the latest when it is enabled', async () => {
    const { webhooks } = account;
    const { id } = await create();
    const uuid = decodeId('hook', id) ?? '';
    const disableWith = async (pending: number) => {
      await addPending(id, pending);
      await webhooks.updateEndpoint({ id, enabled: false });
    };
    await disableWith(10_002);
    expect(await count(id, `status = 'pending'`)).toBe(5_002);
    const { rows } = await pool.query('select url, secret from webhook_endpoints where id = $1', [uuid]);
    const capacity = { id: uuid, ...rows[0], deliveries: 10, bytes: 1_000, testsOnly: false, hasNone: true };
    expect(await queueOf(pool, newUuid(), 60_000, secretCipher.keyIds).due([capacity], [], 1_000)).toEqual([]);
    await webhooks.updateEndpoint({ id, enabled: true });
    expect(await count(id, `status = 'pending' and event_type <> 'webhook.test'`)).toBe(0);
    expect(await count(id, `status = 'pending'`)).toBe(1);

    await disableWith(10_002);
    expect(await count(id, `status = 'pending'`)).toBeGreaterThan(5_000);
    await finish();
    expect(await count(id, `status = 'pending'`)).toBe(0);
  });

  test('removing an endpoint removes its deliveries', async () => {
    const { id } = await create();
    await addDelivery(id, 'pending');
    await account.webhooks.deleteEndpoint({ id });
    expect((await account.webhooks.listEndpoints({})).endpoints).toEqual([]);
    const { rows } = await pool.query('select from webhook_deliveries where account_id = $1', [account.id]);
    expect(rows).toEqual([]);
    expect(await rejection(account.webhooks.listDeliveries({ endpointId: id }))).toContain('NOT_FOUND');
  });

  test('removing an endpoint with thousands of deliveries hides it and all of them at once, and then removes them', async () => {
    const { webhooks } = account;
    const { id } = await create();
    const delivery = await addDelivery(id, 'failed');
    await addPending(id, 10_002);
    await pool.query('update webhook_endpoints set verified_at = now(), due_at = now() where account_id = $1', [
      account.id,
    ]);
    await webhooks.deleteEndpoint({ id });
    expect(await count(id, 'true')).toBe(5_003);
    expect((await webhooks.listEndpoints({})).endpoints).toEqual([]);
    await expectUnknown(id, delivery);
    expect((await auditLog()).slice(1)).toEqual([`a test: DeleteEndpoint ${id}`]);
    expect(await fanOutRecords(pool, [eventRecord(account.id)], pino({ level: 'silent' }))).toBe(0);
    expect(await due()).toEqual([false]);
    // It is not one of the 50 that an account may have.
    await pool.query(
      `insert into webhook_endpoints (id, account_id, url, events, secret)
       select uuidv7(), account_id, url, events, secret from webhook_endpoints, generate_series(1, 49) where id = $1`,
      [decodeId('hook', id)],
    );
    await create();
    expect(await rejection(create())).toMatch(/^LIMIT_REACHED /);

    await finish();
    expect(await count(id, 'true')).toBe(0);
    expect(await due()).toHaveLength(50);
  });

  test.each([
    ['disabling', 'webhooks_fail_pending', (id: string) => account.webhooks.updateEndpoint({ id, enabled: false })],
    ['removing', 'webhooks_delete_deliveries', (id: string) => account.webhooks.deleteEndpoint({ id })],
  ])('%s reads no more deliveries than it changes, whatever the statistics are', async (_, name, change) => {
    const { id } = await create();
    await pool.query('analyze webhook_endpoints, webhook_deliveries');
    const plan = await planOf(name, () => change(id));
    expect(plan).toMatch(/Index Cond: \(endpoint_id = /);
    expect(plan).not.toMatch(/Sort|Seq Scan|Bitmap/);
  });

  test('clearing an account deletes all its endpoints, whatever deliveries they have, and no other’s', async () => {
    const [many, deleted] = [await create(), await create()];
    await addPending(many.id, 5_001);
    await addPending(deleted.id, 5_001);
    await account.webhooks.deleteEndpoint({ id: deleted.id });
    const otherAccount = await newAccount();
    await create(['qr.created'], otherAccount);
    await deleteAccountEndpoints(pool, account.id);
    expect(await due()).toEqual([]);
    expect((await otherAccount.webhooks.listEndpoints({})).endpoints).toHaveLength(1);
  });

  test('rotation issues a new secret, and the old one stays valid for 24 hours', async () => {
    const [{ id, secret }, other] = [await create(), await create()];
    const rotated = await account.webhooks.rotateSecret({ id });
    expect(rotated.secret).toMatch(/^whsec_/);
    const uuid = decodeId('hook', id) ?? '';
    const { rows } = await pool.query(
      `select secret, former_secret, extract(epoch from former_until - now()) / 3600 as hours
       from webhook_endpoints where id = $1`,
      [uuid],
    );
    expect(secretCipher.decrypt(uuid, rows[0].secret)).toBe(rotated.secret);
    expect(secretCipher.decrypt(uuid, rows[0].former_secret)).toBe(secret);
    expect(Number(rows[0].hours)).toBeCloseTo(24, 1);
    const otherUuid = decodeId('hook', other.id) ?? '';
    const { rows: others } = await pool.query('select secret, former_secret from webhook_endpoints where id = $1', [
      otherUuid,
    ]);
    expect([secretCipher.decrypt(otherUuid, others[0].secret), others[0].former_secret]).toEqual([other.secret, null]);
  });

  test('of secrets that are replaced within 24 hours, the last four stay valid, each for its own 24 hours', async () => {
    const { id, secret } = await create();
    const uuid = decodeId('hook', id) ?? '';
    const rotate = async () => (await account.webhooks.rotateSecret({ id })).secret;
    const former = async () => {
      const { rows } = await pool.query(
        `select former.secret from webhook_endpoints,
           unnest(former_secret || older_secrets, former_until || older_until) as former (secret, until)
         where id = $1 order by until desc`,
        [uuid],
      );
      return rows.map((row) => secretCipher.decrypt(uuid, row.secret));
    };
    const secrets = [secret];
    for (let rotation = 0; rotation < 5; rotation++) secrets.unshift(await rotate());
    expect(await former()).toEqual(secrets.slice(1, 5));
    await pool.query('update webhook_endpoints set former_until = now() where id = $1', [uuid]);
    await rotate();
    expect(await former()).toEqual([secrets[0]]);
  });

  test('endpoints and deliveries of other accounts cannot be accessed and are reported like unknown ones', async () => {
    const otherAccount = await newAccount({ allowPrivate: false });
    const { id } = await create(['qr.created'], otherAccount);
    const sent = await addDelivery(id, 'failed');
    await expectUnknown(id, sent);
    await expectUnknown(encodeId('hook', newUuid()), encodeId('dlv', newUuid()));
    await expectUnknown('hook_', 'nonsense');
    await expectUnknown('nonsense', '');
    expect((await otherAccount.webhooks.listEndpoints({})).endpoints).toMatchObject([{ id, enabled: true }]);
    expect(await auditLog()).toEqual([]);
  });
});

describe('deliveries', () => {
  test('a test event is pending and due at once', async () => {
    const { id } = await create();
    const { delivery: sent } = await account.webhooks.sendTestEvent({ id });
    expect(sent).toMatchObject({ endpointId: id, eventType: 'webhook.test', status: DeliveryStatus.PENDING });
    expect(sent?.id).toMatch(/^dlv_/);
    expect(sent?.eventId).toMatch(/^evt_/);
    expect(await due()).toEqual([true]);
    const { rows } = await pool.query<{ body: string }>('select body from webhook_deliveries where account_id = $1', [
      account.id,
    ]);
    expect(JSON.parse(rows[0]?.body ?? '')).toMatchObject({ type: 'webhook.test', data: { endpoint_id: id } });
    expect((await auditLog()).at(-1)).toBe(`a test: SendTestEvent ${id}`);
  });

  test('the list of endpoints counts the failed deliveries of each, up to 100', async () => {
    const [few, many, none] = [await create(), await create(), await create()];
    for (const status of ['failed', 'failed', 'succeeded', 'pending'] as const) await addDelivery(few.id, status);
    for (let n = 0; n < 101; n++) await addDelivery(many.id, 'failed');
    const { endpoints } = await account.webhooks.listEndpoints({});
    const counts = [none, many, few].map(({ id }) => endpoints.find((each) => each.id === id)?.failedDeliveries);
    expect(counts).toEqual([0, 100, 2]);
  });

  test('a page lists deliveries newest first, optionally of one status, with their attempts oldest first', async () => {
    const { id } = await create();
    const failed = await addDelivery(id, 'failed');
    const pending = await addDelivery(id, 'pending');
    for (const [at, status] of [
      ['2026-11-20T10:00:05Z', 503],
      ['2026-11-20T10:00:00Z', null],
    ]) {
      await pool.query(`insert into webhook_attempts values ($1, $2, $3, 12, 'x')`, [
        decodeId('dlv', failed),
        at,
        status,
      ]);
    }
    const page = await account.webhooks.listDeliveries({ endpointId: id });
    expect(page.deliveries.map((each) => each.id)).toEqual([pending, failed]);
    expect(page.deliveries[0]?.nextAttemptAt).toBeDefined();
    expect(page.deliveries[1]).toMatchObject({
      status: DeliveryStatus.FAILED,
      attempts: [{ status: 0 }, { status: 503 }],
    });
    expect(page.deliveries[1]?.nextAttemptAt).toBeUndefined();
    const ids = async (request: { status?: DeliveryStatus; limit?: number; offset?: number }) =>
      (await account.webhooks.listDeliveries({ endpointId: id, ...request })).deliveries.map((each) => each.id);
    expect(await ids({ status: DeliveryStatus.FAILED })).toEqual([failed]);
    expect(await ids({ status: DeliveryStatus.SUCCEEDED })).toEqual([]);
    expect(await ids({ limit: 0 })).toEqual([pending]);
    expect(await ids({ limit: 1, offset: 1 })).toEqual([failed]);
    expect(await ids({ offset: -5, limit: 1_000 })).toEqual([pending, failed]);
  });

  test('a page is read without the bodies of its deliveries', async () => {
    const { id } = await create();
    await addPending(id, 2);
    const calls = await statementsOf(() => account.webhooks.listDeliveries({ endpointId: id }));
    const texts = calls.map((call) => call.text ?? call).filter((text) => String(text).includes('webhook_deliveries'));
    expect(texts).toHaveLength(1);
    expect(texts[0]).not.toMatch(/body|\*/);
  });

  test('a page shows no attempt that its deliveries’ status does not include yet', async () => {
    const { id } = await create();
    const delivery = decodeId('dlv', await addDelivery(id, 'pending'));
    const recorder = await pool.connect();
    onTestFinished(() => recorder.release());
    await recorder.query('begin; lock table webhook_attempts in access exclusive mode');
    const listing = account.webhooks.listDeliveries({ endpointId: id });
    await vi.waitFor(async () => {
      const waiting = `select from pg_locks where relation = 'webhook_attempts'::regclass and not granted`;
      expect((await pool.query(waiting)).rowCount).toBe(1);
    });
    await recorder.query(`insert into webhook_attempts values ($1, now(), 200, 12, '')`, [delivery]);
    await recorder.query(`update webhook_deliveries set status = 'succeeded', next_attempt_at = null where id = $1`, [
      delivery,
    ]);
    await recorder.query('commit');
    expect((await listing).deliveries).toMatchObject([{ status: DeliveryStatus.PENDING, attempts: [] }]);
    const { deliveries } = await account.webhooks.listDeliveries({ endpointId: id });
    expect(deliveries).toMatchObject([{ status: DeliveryStatus.SUCCEEDED, attempts: [{ status: 200 }] }]);
  });

  test('a delivery with thousands of attempts shows the latest, and ListAttempts pages through all', async () => {
    const { id } = await create();
    const often = await addDelivery(id, 'failed');
    await pool.query(
      `insert into webhook_attempts
       select $1, timestamptz '2026-11-20Z' + n * interval '1 microsecond', 500, n, repeat('x', 1024)
       from generate_series(1, 3000) as n`,
      [decodeId('dlv', often)],
    );
    const { deliveries } = await account.webhooks.listDeliveries({ endpointId: id });
    const shown = deliveries[0]?.attempts.map(({ latencyMs }) => latencyMs);
    expect(shown).toEqual(Array.from({ length: 20 }, (_, n) => 2981 + n));

    const all: number[] = [];
    let cursor: string | undefined;
    do {
      const page = await account.webhooks.listAttempts({
        deliveryId: often,
        limit: 1_000,
        ...(cursor === undefined ? {} : { cursor }),
      });
      expect(page.attempts.length).toBeLessThanOrEqual(100);
      expect(page.body).toBe('{}');
      all.push(...page.attempts.map(({ latencyMs }) => latencyMs));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(all).toEqual(Array.from({ length: 3_000 }, (_, n) => 3_000 - n));
    const firstPage = await account.webhooks.listAttempts({ deliveryId: often });
    expect(firstPage.attempts).toHaveLength(25);
    expect(firstPage.delivery).toEqual(deliveries[0]);

    const other = await addDelivery(id, 'failed');
    const { nextCursor = '' } = await account.webhooks.listAttempts({ deliveryId: often, limit: 1 });
    expect(await rejection(account.webhooks.listAttempts({ deliveryId: other, cursor: nextCursor }))).toMatch(
      /^INVALID_CURSOR /,
    );
    expect((await account.webhooks.listAttempts({ deliveryId: other })).attempts).toEqual([]);
  });

  test('resending a delivery restarts its schedule, and no other’s', async () => {
    const { id } = await create();
    const [sent, other] = [await addDelivery(id, 'succeeded'), await addDelivery(id, 'succeeded')];
    const { delivery: again } = await account.webhooks.resendDelivery({ id: sent });
    expect(again).toMatchObject({ id: sent, status: DeliveryStatus.PENDING });
    expect(await due()).toEqual([true]);
    const { rows } = await pool.query('select attempts from webhook_deliveries where id = $1', [decodeId('dlv', sent)]);
    expect(rows).toEqual([{ attempts: 0 }]);
    expect((await auditLog()).at(-1)).toBe(`a test: ResendDelivery ${sent}`);
    const { deliveries } = await account.webhooks.listDeliveries({ endpointId: id, status: DeliveryStatus.SUCCEEDED });
    expect(deliveries.map((each) => each.id)).toEqual([other]);
  });

  test('resendFailed resends the failed deliveries of its endpoint created since a time', async () => {
    const [{ id }, other] = [await create(), await create()];
    await addDelivery(other.id, 'failed');
    await addDelivery(id, 'failed', '2 h');
    await addDelivery(id, 'succeeded', '10 min');
    const recent = [await addDelivery(id, 'failed', '30 min'), await addDelivery(id, 'failed')];
    const since = timestampFromDate(new Date(Date.now() - 3_600_000));
    expect((await account.webhooks.resendFailed({ endpointId: id, since })).deliveries).toBe(2);
    expect(await due()).toEqual([true, false]);
    const { deliveries } = await account.webhooks.listDeliveries({ endpointId: id, status: DeliveryStatus.PENDING });
    expect(deliveries.map((each) => each.id)).toEqual(recent.toReversed());
    const attempts = `select attempts from webhook_deliveries where endpoint_id = $1 and status = 'pending'`;
    const { rows } = await pool.query(attempts, [decodeId('hook', id)]);
    expect(rows).toEqual([{ attempts: 0 }, { attempts: 0 }]);
    expect((await account.webhooks.resendFailed({ endpointId: id, since })).deliveries).toBe(0);
  });

  test('resendFailed resends the 10,000 oldest, and says that more are left', async () => {
    const { id } = await create();
    const since = timestampFromDate(new Date(Date.now() - 3_600_000));
    await pool.query(
      `insert into webhook_deliveries (id, endpoint_id, account_id, event_id, event_type, body, status, next_attempt_at)
       select uuidv7(), $1, $2, uuidv7(), 'qr.created', '{}', 'failed', null from generate_series(1, 10000)`,
      [decodeId('hook', id), account.id],
    );
    const newest = [await addDelivery(id, 'failed'), await addDelivery(id, 'failed')];
    const request = { endpointId: id, since };
    await pool.query('analyze webhook_endpoints, webhook_deliveries');
    const plan = await planOf('webhooks_resend_failed', async () => {
      expect(await account.webhooks.resendFailed(request)).toMatchObject({ deliveries: 10_000, more: true });
    });
    // The statistics know of its failed deliveries, and not that they are pending again.
    expect(plan).toMatch(/Index Cond: \(\(endpoint_id = /);
    expect(plan).not.toMatch(/Filter: .*endpoint_id|Sort|Seq Scan|Bitmap/);
    const { deliveries } = await account.webhooks.listDeliveries({ endpointId: id, status: DeliveryStatus.FAILED });
    expect(deliveries.map((each) => each.id)).toEqual(newest.toReversed());
    expect(await account.webhooks.resendFailed(request)).toMatchObject({ deliveries: 2, more: false });
    // The years that a Timestamp has are more than those of a UUIDv7.
    for (const at of ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z']) {
      const none = await account.webhooks.resendFailed({ endpointId: id, since: timestampFromDate(new Date(at)) });
      expect(none).toMatchObject({ deliveries: 0, more: false });
    }
  });
});
