import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { decodeId, newUuid } from '../../common/contract/ids.ts';
import { DAY_MS } from '../../common/runtime/durations.ts';
import { DeliveryStatus } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { recordingLogger } from '../../test/harness/recording-logger.ts';
import { postgresNow } from '../db/clock.ts';
import { fanOutRecords } from './fan-out.ts';
import { secretCipherWith } from './secret-cipher.ts';
import { runUpkeep } from './upkeep.ts';
import { eventRecord, webhooksFixture } from './webhooks.fixture.ts';

const logger = pino({ level: 'silent' });
const { pool, secretCipher, secretKey, newAccount } = await webhooksFixture();

test('finished deliveries are deleted after 90 days with their attempts, and pending ones are not', async () => {
  const account = await newAccount();
  const { id } = await account.addEndpoint('https://hooks.example.com/');
  await fanOutRecords(
    pool,
    Array.from({ length: 3 }, () => eventRecord(account.id)),
    logger,
  );
  const [succeeded, failed, pending] = (await account.webhooks.listDeliveries({ endpointId: id })).deliveries;
  for (const [delivery, status] of [
    [succeeded, 'succeeded'],
    [failed, 'failed'],
  ] as const) {
    const uuid = decodeId('dlv', delivery?.id ?? '');
    await pool.query('update webhook_deliveries set status = $2, next_attempt_at = null where id = $1', [uuid, status]);
    await pool.query(`insert into webhook_attempts values ($1, now(), 200, 5, '')`, [uuid]);
  }
  const remaining = async () =>
    (await account.webhooks.listDeliveries({ endpointId: id })).deliveries.map((delivery) => delivery.id);
  await runUpkeep(pool, secretCipher, logger, (await postgresNow(pool)) + 89 * DAY_MS);
  expect(await remaining()).toHaveLength(3);
  await runUpkeep(pool, secretCipher, logger, (await postgresNow(pool)) + 91 * DAY_MS);
  expect(await remaining()).toEqual([pending?.id]);
  expect((await pool.query('select from webhook_attempts')).rows).toEqual([]);
});

test('secrets encrypted with the former key are encrypted with the current one, so that the former can be removed', async () => {
  const account = await newAccount();
  const added = await account.addEndpoint('https://hooks.example.com/');
  const id = decodeId('hook', added.id) ?? newUuid();
  const { secret: former } = await account.webhooks.rotateSecret({ id: added.id });
  const { secret } = await account.webhooks.rotateSecret({ id: added.id });
  const key = randomBytes(32);
  const secretsAfterUpkeep = async () => {
    await runUpkeep(pool, secretCipherWith(key, Buffer.from(secretKey, 'base64')), logger, Date.now());
    const [row] = (await pool.query('select * from webhook_endpoints where id = $1', [id])).rows;
    return [row.secret, row.former_secret, ...row.older_secrets].map(
      (encrypted) => encrypted && secretCipherWith(key).decrypt(id, encrypted),
    );
  };
  const secrets = [secret, former, added.secret];
  expect(await secretsAfterUpkeep()).toEqual(secrets);
  // The former secret alone, and the one before it.
  const encrypted = (each: string) => secretCipher.encrypt(id, each);
  await pool.query('update webhook_endpoints set former_secret = $2 where id = $1', [id, encrypted(former)]);
  expect(await secretsAfterUpkeep()).toEqual(secrets);
  await pool.query('update webhook_endpoints set older_secrets[1] = $2 where id = $1', [id, encrypted(added.secret)]);
  expect(await secretsAfterUpkeep()).toEqual(secrets);
  await pool.query('update webhook_endpoints set former_until = now() where id = $1', [id]);
  expect(await secretsAfterUpkeep()).toEqual([secret, null]);
});

test('a secret that can’t be decrypted is logged, and the others are re-encrypted', async () => {
  const account = await newAccount();
  const addEndpoint = async () => {
    const { id, secret } = await account.addEndpoint('https://hooks.example.com/');
    return { id, secret, uuid: decodeId('hook', id) ?? '' };
  };
  const [one, unknown, another] = [await addEndpoint(), await addEndpoint(), await addEndpoint()];
  const encrypted = secretCipherWith(randomBytes(32)).encrypt(unknown.uuid, unknown.secret);
  await pool.query('update webhook_endpoints set secret = $2 where id = $1', [unknown.uuid, encrypted]);
  const key = randomBytes(32);
  const recording = recordingLogger();
  await runUpkeep(pool, secretCipherWith(key, Buffer.from(secretKey, 'base64')), recording.logger, Date.now());
  const encryptedOf = async ({ uuid }: typeof one): Promise<Buffer> =>
    (await pool.query('select secret from webhook_endpoints where id = $1', [uuid])).rows[0].secret;
  const { decrypt } = secretCipherWith(key);
  for (const each of [one, another]) expect(decrypt(each.uuid, await encryptedOf(each))).toBe(each.secret);
  expect(await encryptedOf(unknown)).toEqual(encrypted);
  expect(recording.lines).toContainEqual(expect.stringContaining(unknown.id));
});

test('endpoints that nothing is sent to any more are disabled: unverified ones, and after five days of failures', async () => {
  const account = await newAccount();
  const create = async () =>
    (await account.webhooks.createEndpoint({ url: 'https://hooks.example.com/', events: ['qr.created'] })).endpoint;
  const failTests = (id: string) =>
    pool.query(
      `update webhook_deliveries set status = 'failed', next_attempt_at = null
       where endpoint_id = $1 and event_type = 'webhook.test'`,
      [decodeId('hook', id)],
    );
  const failingFor = async (days: number) => {
    const { id } = await account.addEndpoint('https://hooks.example.com/');
    const uuid = decodeId('hook', id);
    await pool.query(`update webhook_endpoints set failing_since = now() - $2 * interval '1 day' where id = $1`, [
      uuid,
      days,
    ]);
    return id;
  };
  const tested = (await create())?.id ?? '';
  const pendingTest = (await create())?.id ?? '';
  const retried = await failingFor(6);
  await fanOutRecords(pool, [eventRecord(account.id)], logger);
  const failing = await failingFor(6);
  const recent = await failingFor(4);
  await failTests(tested);
  await runUpkeep(pool, secretCipher, logger, Date.now());
  const { endpoints } = await account.webhooks.listEndpoints({});
  expect(Object.fromEntries(endpoints.map(({ id, disabledReason }) => [id, disabledReason]))).toEqual({
    [tested]: 'Its test event failed.',
    [pendingTest]: '',
    [retried]: '',
    [failing]: 'All deliveries failed for five days.',
    [recent]: '',
  });
  const { deliveries } = await account.webhooks.listDeliveries({ endpointId: tested });
  expect(deliveries.map(({ status }) => status)).toEqual([DeliveryStatus.FAILED, DeliveryStatus.FAILED]);
  const { rows } = await pool.query(`select subject from audit_entries where action = 'endpoint disabled'`);
  expect(rows.map(({ subject }) => subject).toSorted()).toEqual([tested, failing].toSorted());
});
