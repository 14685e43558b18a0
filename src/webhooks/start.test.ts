import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { afterAll, expect, onTestFinished, test, vi } from 'vitest';
import { decodeId } from '../../common/contract/ids.ts';
import { openPostgresLog } from '../../common/log/postgres.ts';
import { EVENTS } from '../../common/log/topics.ts';
import { DeliveryStatus } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { startDns } from '../../test/harness/dns.ts';
import { listen } from '../db/notifications.ts';
import { fanOutRecords } from './fan-out.ts';
import { startReceiver } from './receiver.fixture.ts';
import { startWebhooks } from './start.ts';
import { eventRecord, webhooksFixture } from './webhooks.fixture.ts';

const EVENTUALLY = { timeout: 20_000, interval: 25 };
const { url, pool, secretCipher, newAccount } = await webhooksFixture();
const logger = pino({ level: 'silent' });
const notifications = listen(pool, logger);
afterAll(() => notifications.stop());

test.each([
  [false, 'The address is not on the public Internet.', 0],
  [true, '', 1],
])('allowPrivate %s: the response of an endpoint on this machine is %j', async (allowPrivate, response, requests) => {
  const log = openPostgresLog({ url, clientId: 'signpost-test', logger });
  onTestFinished(() => log.close());
  await log.ensureTopics([EVENTS]);
  const resolvers = [(await startDns()).address];
  const webhooks = startWebhooks({ pool, log, notifications, secretCipher, allowPrivate, resolvers, logger });
  onTestFinished(() => webhooks.stop());
  const receiver = await startReceiver();
  // The endpoint may date from a time when private addresses were allowed, or have got into the table in another way.
  const account = await newAccount({ allowPrivate: true });
  const { id } = await account.addEndpoint(receiver.url);
  await log.publish(EVENTS.name, [eventRecord(account.id)]);
  await vi.waitFor(async () => {
    const { deliveries } = await account.webhooks.listDeliveries({ endpointId: id });
    expect(deliveries).toMatchObject([{ attempts: [{ response }] }]);
  }, EVENTUALLY);
  expect(receiver.connections()).toBe(requests);
});

test('what was left when an endpoint was disabled fails unless it was enabled again, and when it was deleted goes with it', async () => {
  const account = await newAccount();
  const { id } = await account.addEndpoint('https://hooks.example.com/');
  const deleted = await account.addEndpoint('https://hooks.example.com/');
  const enabled = await account.addEndpoint('https://hooks.example.com/');
  await fanOutRecords(pool, [eventRecord(account.id)], logger);
  await pool.query(
    `update webhook_endpoints set disabled_reason = 'It was switched off.', fails_pending = true, due_at = null
     where account_id = $1`,
    [account.id],
  );
  // As a core of an earlier version does.
  await pool.query('update webhook_endpoints set disabled_reason = null where id = $1', [decodeId('hook', enabled.id)]);
  const uuid = decodeId('hook', deleted.id);
  await pool.query('update webhook_endpoints set deleted = true where id = $1', [uuid]);
  const log = openPostgresLog({ url, clientId: 'signpost-test', logger });
  onTestFinished(() => log.close());
  await log.ensureTopics([EVENTS]);
  const webhooks = startWebhooks({ pool, log, notifications, secretCipher, allowPrivate: true, resolvers: [], logger });
  onTestFinished(() => webhooks.stop());
  await vi.waitFor(async () => {
    expect((await pool.query('select from webhook_endpoints where id = $1', [uuid])).rowCount).toBe(0);
    const { deliveries } = await account.webhooks.listDeliveries({ endpointId: id });
    expect(deliveries).toMatchObject([{ status: DeliveryStatus.FAILED, attempts: [] }]);
  }, EVENTUALLY);
  const { deliveries } = await account.webhooks.listDeliveries({ endpointId: enabled.id });
  expect(deliveries).toMatchObject([{ status: DeliveryStatus.PENDING }]);
});

test('events of all partitions arrive although all connections to Postgres are terminated repeatedly', async () => {
  const log = openPostgresLog({ url, clientId: 'signpost-test', logger });
  onTestFinished(() => log.close());
  await log.ensureTopics([EVENTS]);
  const webhooks = startWebhooks({ pool, log, notifications, secretCipher, allowPrivate: true, resolvers: [], logger });
  onTestFinished(() => webhooks.stop());
  const receiver = await startReceiver();
  const account = await newAccount();
  await account.addEndpoint(receiver.url);
  const sent: string[] = [];
  for (let round = 0; round < 20; round++) {
    const events = Array.from({ length: 30 }, () => eventRecord(account.id));
    await vi.waitFor(() => log.publish(EVENTS.name, events), EVENTUALLY);
    sent.push(...events.map(({ headers }) => headers.ce_id ?? ''));
    if (round % 7 === 3) {
      const terminate = `select pg_terminate_backend(pid) from pg_stat_activity
                   where datname = current_database() and pid <> pg_backend_pid()`;
      await vi.waitFor(() => pool.query(terminate), EVENTUALLY);
    }
  }
  await vi.waitFor(() => expect(new Set(receiver.received.map(({ id }) => id))).toEqual(new Set(sent)), EVENTUALLY);
});

test('a notification suffices for an event to arrive, also after the listening connection was lost', async () => {
  const log = openPostgresLog({ url, clientId: 'signpost-test', logger });
  onTestFinished(() => log.close());
  await log.ensureTopics([EVENTS]);
  // With polls an hour apart, nothing else could wake the deliverer.
  const rarelyPolling = listen(pool, logger, { fallbackMs: 3_600_000 });
  onTestFinished(() => rarelyPolling.stop());
  const webhooks = startWebhooks({
    pool,
    log,
    notifications: rarelyPolling,
    secretCipher,
    allowPrivate: true,
    resolvers: [],
    logger,
  });
  onTestFinished(() => webhooks.stop());
  const receiver = await startReceiver();
  const account = await newAccount();
  await account.addEndpoint(receiver.url);
  const arrives = async () => {
    await vi.waitFor(() => expect(rarelyPolling.arriving()).toBe(true), EVENTUALLY);
    const event = eventRecord(account.id);
    await log.publish(EVENTS.name, [event]);
    await vi.waitFor(() => expect(receiver.received.at(-1)?.id).toBe(event.headers.ce_id), EVENTUALLY);
  };
  await arrives();
  // Longer than an idle endpoint stays leased, because the deliverer polls until then.
  await sleep(3_000);
  await arrives();
  const ended = await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and query = 'listen signpost_work'`,
  );
  expect(ended.rowCount).toBeGreaterThan(0);
  await sleep(3_000);
  await arrives();
});
