import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { run, statement } from '../../common/postgres/sql.ts';
import { hourly } from '../../common/runtime/periodically.ts';
import { forgetFullBudgets } from './attempt-budgets.ts';
import type { Seal } from './seal.ts';

/** How long deliveries that are final are kept, with their attempts: longer than the topic keeps their events. */
const KEPT_MS = 90 * 86_400_000;
const AT_ONCE = 1_000;

/** Index: webhook_deliveries_pkey; ids are in the order of their making. */
const forget = statement<{ id: string }>(
  'webhooks_forget_old',
  `delete from webhook_deliveries where id in (
     select id from webhook_deliveries where id < $1 and status <> 'pending' order by id limit ${AT_ONCE}
     for update skip locked
   ) returning id`,
);

/** Every endpoint is looked at, once an hour. */
const sealedBefore = statement<{ id: string; secret: Buffer; former_secret: Buffer | null }>(
  'webhooks_sealed_before',
  `select id, secret, former_secret from webhook_endpoints
   where substring(secret for 4) <> $1 or substring(former_secret for 4) <> $1`,
);

/** Unless the secret was rotated meanwhile. Index: webhook_endpoints_pkey. */
const sealAgain = statement(
  'webhooks_seal_again',
  'update webhook_endpoints set secret = $3, former_secret = $4 where id = $1 and secret = $2',
);

/** Deletes what is old, and seals with the present key what another one sealed. Any number may do it at once. */
export async function tidy(pool: Pool, seal: Seal, now: number): Promise<void> {
  const before = uuidAt(now - KEPT_MS);
  while ((await run(pool, forget, [before])).length === AT_ONCE);
  await forgetFullBudgets(pool);
  for (const { id, secret, former_secret: former } of await run(pool, sealedBefore, [seal.keyId])) {
    const again = (sealed: Buffer) => seal.seal(id, seal.open(id, sealed));
    await run(pool, sealAgain, [id, secret, again(secret), former && again(former)]);
  }
}

/** Does so once an hour. */
export function startUpkeep(pool: Pool, seal: Seal, logger: Logger): { stop(): Promise<void> } {
  return hourly('upkeep of webhooks', logger, () => tidy(pool, seal, Date.now()));
}

/** The least UUIDv7 of a time. */
function uuidAt(time: number): string {
  const hex = time.toString(16).padStart(12, '0');
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
}
