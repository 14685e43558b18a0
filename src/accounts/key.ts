import { newUuid } from '../../common/contract/ids.ts';
import { type Queryable, run, statement } from '../../common/postgres/sql.ts';
import { hashApiKey, newApiKey } from '../access/api-key.ts';

/**
 * The new hash takes the place of the old one, which is dead from this commit on: admission looks keys up here and
 * caches none. A new key starts with an empty window. Through SQL and not the ORM, whose statements show their values.
 * Indexes: api_keys_pkey, meters_pkey.
 */
const replace = statement(
  'accounts_replace_key',
  `with fresh as (
     insert into api_keys (account_id, id, hash) values ($1, $2, $3)
     on conflict (account_id) do update set id = excluded.id, hash = excluded.hash, created_at = now()
   )
   update meters set admissions = array_fill(0::bigint, array[120]), turn = 1 where account_id = $1`,
);

/** Gives an account a new key, which is returned and kept nowhere. `accountId`: UUID. */
export async function replaceKey(on: Queryable, accountId: string): Promise<string> {
  const key = newApiKey();
  await run(on, replace, [accountId, newUuid(), hashApiKey(key)]);
  return key;
}

/** Index: api_keys_pkey. */
const revoke = statement('accounts_revoke_key', 'delete from api_keys where account_id = $1');

/** Leaves an account without a key, from this commit on. `accountId`: UUID. */
export async function revokeKey(on: Queryable, accountId: string): Promise<void> {
  await run(on, revoke, [accountId]);
}
