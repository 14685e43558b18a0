import { randomBytes } from 'node:crypto';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { decodeId, newUuid } from '../../common/contract/ids.ts';
import { fanOutRecords } from './fan-out.ts';
import { sealWith } from './seal.ts';
import { tidy } from './upkeep.ts';
import { eventRecord, webhooksFixture } from './webhooks.fixture.ts';

const DAY_MS = 86_400_000;
const { pool, seal, secretKey, newAccount } = await webhooksFixture();

test('deliveries that are final are forgotten after 90 days, with their attempts; those that wait are not', async () => {
  const account = await newAccount();
  const { id } = await account.endpoint('https://hooks.example.com/');
  await fanOutRecords(
    pool,
    Array.from({ length: 3 }, () => eventRecord(account.id)),
    pino({ level: 'silent' }),
  );
  const [done, failed, waiting] = (await account.webhooks.listDeliveries({ endpointId: id })).deliveries;
  for (const [delivery, status] of [
    [done, 'succeeded'],
    [failed, 'failed'],
  ] as const) {
    const uuid = decodeId('dlv', delivery?.id ?? '');
    await pool.query('update webhook_deliveries set status = $2, next_attempt_at = null where id = $1', [uuid, status]);
    await pool.query(`insert into webhook_attempts values ($1, now(), 200, 5, '')`, [uuid]);
  }
  const left = async () =>
    (await account.webhooks.listDeliveries({ endpointId: id })).deliveries.map((delivery) => delivery.id);
  await tidy(pool, seal, Date.now() + 89 * DAY_MS);
  expect(await left()).toHaveLength(3);
  await tidy(pool, seal, Date.now() + 91 * DAY_MS);
  expect(await left()).toEqual([waiting?.id]);
  expect((await pool.query('select from webhook_attempts')).rows).toEqual([]);
});

test('what a former key sealed is sealed with the present one, so that the former one can go', async () => {
  const account = await newAccount();
  const made = await account.endpoint('https://hooks.example.com/');
  const { secret } = await account.webhooks.rotateSecret({ id: made.id });
  const key = randomBytes(32);
  await tidy(pool, sealWith(key, Buffer.from(secretKey, 'base64')), Date.now());
  const id = decodeId('hook', made.id) ?? newUuid();
  const { rows } = await pool.query('select secret, former_secret from webhook_endpoints where id = $1', [id]);
  const { open } = sealWith(key);
  expect([open(id, rows[0].secret), open(id, rows[0].former_secret)]).toEqual([secret, made.secret]);
});
