import type { Pool, PoolClient } from 'pg';
import { failure, type Reason } from '../../../common/contract/errors.ts';
import {
  type Connection,
  first,
  promptStatement,
  type Queryable,
  run,
  statement,
} from '../../../common/postgres/sql.ts';
import { columnsOf, fromExcluded, listed, parameters, type RowOf, valuesOf } from '../../db/columns.ts';
import { deletionInSteps } from '../../db/delete-in-steps.ts';
import { LOCKS } from '../../db/locks.ts';
import { IdempotencyEntity } from '../entities.ts';

/** An answer under its key. */
export type KeyRecord = Omit<RowOf<IdempotencyEntity>, 'created_at' | 'error'> & {
  error: { reason: Reason; message: string; details: Record<string, string> } | null;
};

/** The call and its answer. */
export type StoredAnswer = Omit<KeyRecord, 'account_id' | 'key'>;

/** What is written; Postgres sets the time. */
const NEW_COLUMNS = columnsOf(IdempotencyEntity).filter(({ name }) => name !== 'created_at');
/** The same without the key. */
const ANSWER_COLUMNS = NEW_COLUMNS.filter(({ name }) => name !== 'account_id' && name !== 'key');

/** A key with the answer that is stored for it. */
export type KeyedAnswer = Pick<KeyRecord, 'key' | 'fingerprint' | 'response'>;

/**
 * The number of the advisory lock of a key, in SQL; null for a key that is null. None of `LOCKS`: the hash can be
 * inverted, so that a caller could choose a key that holds one of them.
 */
const lockId = (accountId: string, key: string) =>
  `(select case when id in (${Object.values(LOCKS).join()}) then -id else id end
    from hashtextextended(${accountId} || ' ' || ${key}, 0) as id)`;

/** Takes the lock of a key until the transaction ends, if nothing else holds it. Null for a key that is null. */
export const TRY_KEY_LOCK = (accountId: string, key: string) => `pg_try_advisory_xact_lock(${lockId(accountId, key)})`;

/**
 * Held until the transaction ends, so a crash leaves nothing behind. A call that does not get it is answered "in
 * flight", unless an answer is stored.
 */
const lock = statement<{ acquired: boolean }>(
  'access_idempotency_lock',
  `select ${TRY_KEY_LOCK('$1', '$2')} as acquired`,
);

/** The same lock, held by the connection over several transactions until it is released or the connection breaks. */
const lockSession = statement<{ acquired: boolean }>(
  'access_idempotency_lock_session',
  `select pg_try_advisory_lock(${lockId('$1', '$2')}) as acquired`,
);

const unlockSession = statement(
  'access_idempotency_unlock_session',
  `select pg_advisory_unlock(${lockId('$1', '$2')})`,
);

/** Whether nothing holds the lock; shared, so that several calls may ask at a time. */
const isUnlocked = statement<{ unlocked: boolean }>(
  'access_idempotency_is_unlocked',
  `select pg_try_advisory_xact_lock_shared(${lockId('$1', '$2')}) as unlocked`,
);

/** Index: idempotency_pkey. */
const find = statement<StoredAnswer>(
  'access_idempotency_find',
  `select ${listed(ANSWER_COLUMNS)} from idempotency
   where account_id = $1 and key = $2 and created_at > now() - interval '24 hours'`,
);

/** Index: idempotency_pkey. */
const findKey = promptStatement(
  'access_idempotency_find_key',
  `select from idempotency where account_id = $1 and key = $2 and created_at > now() - interval '24 hours'`,
);

/** Whether an answer is stored under a key of the account. `accountId`: UUID. */
export async function isStoredKey(pool: Pool, accountId: string, key: string): Promise<boolean> {
  return (await first(pool, findKey, [accountId, key])) !== undefined;
}

/** Replaces a record that is older than 24 hours and not deleted yet. */
const store = statement(
  'access_idempotency_store',
  `insert into idempotency (${listed(NEW_COLUMNS)}) values (${parameters(NEW_COLUMNS)})
   on conflict (account_id, key) do update set ${fromExcluded(ANSWER_COLUMNS)}, created_at = now()`,
);

/**
 * Inserts the answers of those rows of a query that have a `key`, whose locks are held, and returns the keys that had
 * none. For a statement that answers several calls (`onceTogether`); only through this and `TRY_KEY_LOCK` do statements
 * of other modules access the table.
 */
export const STORE_NEW_ANSWERS = (from: string) =>
  `insert into idempotency (account_id, key, fingerprint, response)
   select account_id, key, fingerprint, response from ${from} where key is not null
   on conflict (account_id, key) do nothing returning account_id, key`;

/** Stores the first answer to a call. */
export async function storeAnswer(tx: PoolClient, record: KeyRecord): Promise<void> {
  await run(tx, store, valuesOf(NEW_COLUMNS, record));
}

/** Index: idempotency_pkey. */
const replaceResponse = statement(
  'access_idempotency_replace_response',
  'update idempotency set response = $3 where account_id = $1 and key = $2',
);

/** Replaces the response that is stored under a key. `response`: serialized. */
export async function replaceStored(
  on: Queryable,
  accountId: string,
  key: string,
  response: Uint8Array,
): Promise<void> {
  await run(on, replaceResponse, [accountId, key, response]);
}

/**
 * Locks the key for this transaction and returns its record, if any. Throws when it is in flight. Other holders of the
 * lock of a key with a record only replay it, too.
 */
export async function lockAndFind(tx: PoolClient, accountId: string, key: string): Promise<StoredAnswer | undefined> {
  const locked = await first(tx, lock, [accountId, key]);
  // A separate statement, so that it sees what the last holder of the lock committed.
  const stored = await first(tx, find, [accountId, key]);
  if (!stored && !locked?.acquired) throw inFlight();
  return stored;
}

/** The record of a call with `finish`, if any. Throws until that has ended: the record has another answer before. */
export async function findFinal(on: Queryable, accountId: string, key: string): Promise<StoredAnswer | undefined> {
  if (!(await first(on, findKey, [accountId, key]))) return undefined;
  if (!(await first(on, isUnlocked, [accountId, key]))?.unlocked) throw inFlight();
  return first(on, find, [accountId, key]);
}

/**
 * Runs `work`, which may take several transactions, while the connection holds the lock of a key. Throws when the key
 * is in flight.
 */
export async function withKeyLocked<Result>(
  { client, markBroken }: Connection,
  accountId: string,
  key: string,
  work: () => Promise<Result>,
): Promise<Result> {
  if (!(await first(client, lockSession, [accountId, key]))?.acquired) throw inFlight();
  try {
    return await work();
  } finally {
    await run(client, unlockSession, [accountId, key]).catch(markBroken);
  }
}

function inFlight() {
  return failure('IDEMPOTENCY_KEY_IN_FLIGHT', 'A request with this Idempotency-Key is still running.');
}

/** Index: idempotency_age. */
const deleteExpired = deletionInSteps('access_idempotency_delete_expired', {
  table: 'idempotency',
  key: 'account_id, key',
  where: `created_at <= now() - interval '24 hours'`,
  locking: 'for update skip locked',
});

/** Deletes all keys older than 24 hours. Once `stopping` is aborted, the others are left to the next call. */
export function deleteExpiredKeys(pool: Pool, stopping?: AbortSignal): Promise<void> {
  return deleteExpired(pool, [], stopping);
}

/** Index: idempotency_pkey. */
const deleteOfAccount = statement(
  'access_idempotency_delete_of_account',
  'delete from idempotency where account_id = $1',
);

/** Deletes all idempotency keys of an account with the answers stored for replay. `accountId`: UUID. */
export async function deleteAccountIdempotencyKeys(pool: Pool, accountId: string): Promise<void> {
  await run(pool, deleteOfAccount, [accountId]);
}
