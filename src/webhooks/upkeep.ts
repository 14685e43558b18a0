import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { encodeId, lowestUuidAt } from '../../common/contract/ids.ts';
import { run, statement } from '../../common/postgres/sql.ts';
import { DAY_MS } from '../../common/runtime/durations.ts';
import { hourly } from '../../common/runtime/periodically.ts';
import { postgresNow } from '../db/clock.ts';
import type { SecretCipher } from './secret-cipher.ts';
import { deleteFullBudgets } from './sending/attempt-budgets.ts';
import { disableIdle } from './sending/disable-policy.ts';

/** Retention of finished deliveries and their attempts: longer than the topic retains their events. */
const RETENTION_MS = 90 * DAY_MS;
const BATCH_SIZE = 1_000;

/** Index: webhook_deliveries_pkey. Ids are in the order of creation. */
const deleteExpired = statement<{ id: string }>(
  'webhooks_delete_expired',
  `delete from webhook_deliveries where id in (
     select id from webhook_deliveries where id < $1 and status <> 'pending' order by id limit ${BATCH_SIZE}
     for update skip locked
   ) returning id`,
);

/** Scans all endpoints, once an hour. The former secret is the last to expire. */
const clearExpiredSecrets = statement(
  'webhooks_clear_expired_secrets',
  `update webhook_endpoints set former_secret = null, former_until = null, older_secrets = '{}', older_until = '{}'
   where id in (select id from webhook_endpoints where former_until <= now() for no key update skip locked)`,
);

interface EncryptedSecrets {
  readonly id: string;
  readonly secret: Buffer;
  readonly former_secret: Buffer | null;
  readonly older_secrets: readonly Buffer[];
}

/** Scans all endpoints, once an hour. */
const encryptedWithOtherKey = statement<EncryptedSecrets>(
  'webhooks_encrypted_with_other_key',
  `select id, secret, former_secret, older_secrets from webhook_endpoints
   where exists (
     select from unnest(secret || (former_secret || older_secrets)) as encrypted where substring(encrypted for 4) <> $1
   )`,
);

/** Index: webhook_endpoints_pkey. Does nothing if the secret was rotated, or former ones have expired, meanwhile. */
const replaceEncrypted = statement(
  'webhooks_replace_encrypted',
  `update webhook_endpoints set secret = $4, former_secret = $5, older_secrets = $6
   where id = $1 and secret = $2 and former_secret is not distinct from $3`,
);

/**
 * Deletes expired deliveries, expired secrets and full budgets, disables endpoints that no attempt will disable, and
 * re-encrypts with the current key the secrets that another key encrypted. Any number of processes may run it at once.
 * `now`: Postgres's clock. Once `stopping` is aborted, the rest is left to the next run.
 */
export async function runUpkeep(
  pool: Pool,
  secretCipher: SecretCipher,
  logger: Logger,
  now: number,
  stopping?: AbortSignal,
): Promise<void> {
  const expiredBefore = lowestUuidAt(now - RETENTION_MS);
  while ((await run(pool, deleteExpired, [expiredBefore])).length === BATCH_SIZE && !stopping?.aborted);
  await deleteFullBudgets(pool);
  await disableIdle(pool, logger, stopping);
  await run(pool, clearExpiredSecrets, []);
  for (const row of await run(pool, encryptedWithOtherKey, [secretCipher.keyId])) {
    if (stopping?.aborted) return;
    const { id, secret, former_secret: former, older_secrets: older } = row;
    const reencrypt = (encrypted: Buffer) => secretCipher.encrypt(id, secretCipher.decrypt(id, encrypted));
    let reencrypted: [Buffer, Buffer | null, Buffer[]];
    try {
      reencrypted = [reencrypt(secret), former && reencrypt(former), older.map(reencrypt)];
    } catch (error) {
      // Such an endpoint must not keep the secrets of the others encrypted with a key that is about to be removed.
      const endpoint = encodeId('hook', id);
      logger.error({ err: error, endpoint }, 'the secret of a webhook endpoint can’t be decrypted');
      continue;
    }
    await run(pool, replaceEncrypted, [id, secret, former, ...reencrypted]);
  }
}

/** Runs the upkeep once an hour. */
export function startUpkeep(pool: Pool, secretCipher: SecretCipher, logger: Logger): { stop(): Promise<void> } {
  return hourly('upkeep of webhooks', logger, async (stopping) =>
    runUpkeep(pool, secretCipher, logger, await postgresNow(pool), stopping),
  );
}
