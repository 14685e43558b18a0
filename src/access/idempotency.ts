import { createHash } from 'node:crypto';
import { type DescMessage, type DescMethodUnary, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import type { Pool, PoolClient } from 'pg';
import { failure, REASONS, type Reason, readFailure } from '../../common/contract/errors.ts';
import { methodName } from '../../common/contract/method-name.ts';
import { first, promptStatement, type Queryable, run, statement, withConnection } from '../../common/postgres/sql.ts';
import { isUnavailable } from '../../common/postgres/unavailable.ts';
import { columnsOf, fromExcluded, listed, parameters, type RowOf, valuesOf } from '../db/columns.ts';
import { asFailure } from './as-failure.ts';
import { transactionOf } from './commit-limit.ts';
import { IdempotencyEntity } from './entities.ts';
import { expectQuota } from './usage.ts';
import { expectValid } from './validator.ts';

/** 1–255 visible ASCII characters. Source: docs/contract.md, "Idempotency". */
const KEY = /^[\x21-\x7e]{1,255}$/;

/** Whether the value of an `Idempotency-Key` is valid. */
export function isIdempotencyKey(key: string): boolean {
  return KEY.test(key);
}

/** Whether an answer to a call with a key is a replay: metadata of every one, errors included. */
const REPLAY = 'idempotent-replay';

/** HTTP statuses of errors that are stored and replayed; after any other error a retry runs again. */
const STORED_STATUSES = new Set([400, 403, 413]);

type RecordRow = Omit<RowOf<IdempotencyEntity>, 'created_at' | 'error'> & {
  error: { reason: Reason; message: string; details: Record<string, string> } | null;
};

type StoredAnswer = Omit<RecordRow, 'account_id' | 'key'>;

/** What is written; Postgres sets the time. */
const NEW_COLUMNS = columnsOf(IdempotencyEntity).filter(({ name }) => name !== 'created_at');
/** The call and its answer. */
const ANSWER_COLUMNS = NEW_COLUMNS.filter(({ name }) => name !== 'account_id' && name !== 'key');

/** Takes the lock of a key until the transaction ends, if nothing else holds it. Null for a key that is null. */
export const TRY_KEY_LOCK = (accountId: string, key: string) =>
  `pg_try_advisory_xact_lock(hashtextextended(${accountId} || ' ' || ${key}, 0))`;

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
  `select pg_try_advisory_lock(hashtextextended($1 || ' ' || $2, 0)) as acquired`,
);

const unlockSession = statement(
  'access_idempotency_unlock_session',
  `select pg_advisory_unlock(hashtextextended($1 || ' ' || $2, 0))`,
);

/** Whether nothing holds the lock; shared, so that several calls may ask at a time. */
const isUnlocked = statement<{ unlocked: boolean }>(
  'access_idempotency_is_unlocked',
  `select pg_try_advisory_xact_lock_shared(hashtextextended($1 || ' ' || $2, 0)) as unlocked`,
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
 * Inserts the answers of those rows of a query that have a `key`, whose locks are held, and returns the keys that had none.
 * For a statement that answers several calls (`onceTogether`); only through this and `TRY_KEY_LOCK` do statements of other
 * modules access the table.
 */
export const STORE_NEW_ANSWERS = (from: string) =>
  `insert into idempotency (account_id, key, fingerprint, response)
   select account_id, key, fingerprint, response from ${from} where key is not null
   on conflict (account_id, key) do nothing returning account_id, key`;

async function storeAnswer(tx: PoolClient, record: RecordRow): Promise<void> {
  await run(tx, store, valuesOf(NEW_COLUMNS, record));
}

/** Index: idempotency_pkey. */
const replaceResponse = statement(
  'access_idempotency_replace_response',
  'update idempotency set response = $3 where account_id = $1 and key = $2',
);

/** Keys per statement. */
const MAX_DELETED = 5_000;

/** Index: idempotency_age. */
const deleteExpired = statement(
  'access_idempotency_delete_expired',
  `with deleted as (
     delete from idempotency where (account_id, key) in (
       select account_id, key from idempotency where created_at <= now() - interval '24 hours' limit ${MAX_DELETED}
       for update skip locked
     )
     returning 1
   )
   select 1 from deleted limit 1`,
);

/** A call that may carry an idempotency key. */
export interface Call<Request extends DescMessage, Response extends DescMessage> {
  readonly pool: Pool;
  /** UUID. */
  readonly accountId: string;
  readonly context: HandlerContext;
  readonly method: DescMethodUnary<Request, Response>;
  readonly request: MessageShape<Request>;
  /** What it costs, in requests; default 1. Less quota than that is an error that comes before those of the request. */
  readonly cost?: number;
}

/**
 * Runs `operation` in a transaction, and at most once per idempotency key of the account: a second call with the same
 * key and body gets the first call's answer, error or not, marked `idempotent-replay: true`. The record commits
 * together with the operation.
 *
 * `finish` runs after that commit and returns the answer that is stored instead; meanwhile the key stays in flight and
 * a connection is held. If the process dies in between, the answer of `operation` is replayed.
 *
 * Metadata read: `idempotency-key`; `idempotency-fingerprint`, which identifies equal bodies (the gateway's hash of
 * method, path and raw body; otherwise the request itself is hashed).
 */
export async function once<Request extends DescMessage, Response extends DescMessage>(
  call: Call<Request, Response>,
  operation: (tx: PoolClient) => Promise<MessageShape<Response>>,
  finish?: (response: MessageShape<Response>) => Promise<MessageShape<Response>>,
): Promise<MessageShape<Response>> {
  const { pool, context } = call;
  const key = context.requestHeader.get('idempotency-key');
  if (key === null) {
    const response = await transactionOf(context, pool, (tx) => validated(call, tx, operation));
    return finish ? finish(response) : response;
  }
  try {
    return await onceWithKey(call, key, operation, finish);
  } catch (error) {
    const failed = asFailure(error, { stream: false, method: call.method, message: call.request });
    if (!failed.metadata.has(REPLAY)) failed.metadata.set(REPLAY, 'false');
    throw failed;
  }
}

async function onceWithKey<Request extends DescMessage, Response extends DescMessage>(
  call: Call<Request, Response>,
  key: string,
  operation: (tx: PoolClient) => Promise<MessageShape<Response>>,
  finish?: (response: MessageShape<Response>) => Promise<MessageShape<Response>>,
): Promise<MessageShape<Response>> {
  const { pool, accountId, context } = call;
  if (!isIdempotencyKey(key)) {
    expectQuota(context, (call.cost ?? 1) - 1);
    throw failure('INVALID_IDEMPOTENCY_KEY', 'Idempotency-Key must be 1 to 255 visible ASCII characters.');
  }
  const outcome = await withConnection(pool, async (connection) => {
    if (!finish) return transactionOf(context, connection, (tx) => runOrReplay(call, key, tx, operation));
    const final = await findFinal(connection.client, accountId, key);
    if (final) return replayOf(call, final);
    if (!(await first(connection.client, lockSession, [accountId, key]))?.acquired) throw inFlight();
    try {
      const done = await transactionOf(context, connection, (tx) => runOrReplay(call, key, tx, operation));
      if (done.replay || !done.response) return done;
      const response = await finish(done.response);
      await run(connection.client, replaceResponse, [accountId, key, toBinary(call.method.output, response)]);
      return { ...done, response };
    } finally {
      await run(connection.client, unlockSession, [accountId, key]).catch(connection.markBroken);
    }
  }).catch(notGuaranteed);

  const replay = String(outcome.replay);
  if (outcome.response) {
    context.responseHeader.set(REPLAY, replay);
    return outcome.response;
  }
  outcome.error?.metadata.set(REPLAY, replay);
  throw outcome.error;
}

/** A key with the answer that is stored for it. */
export type KeyedAnswer = Pick<RecordRow, 'key' | 'fingerprint' | 'response'>;

/**
 * Runs a call whose answer is known before it takes effect in a transaction with other calls. `commit` stores the answer
 * under the key, if there is one, and commits; it resolves to whether it did. Resolves to undefined if it did not, or if the
 * key is invalid: `once` then answers the call, from what is stored for its key if anything is.
 */
export async function onceTogether<Request extends DescMessage, Response extends DescMessage>(
  call: Call<Request, Response>,
  response: MessageShape<Response>,
  commit: (answer: KeyedAnswer | undefined) => Promise<boolean>,
): Promise<MessageShape<Response> | undefined> {
  const { context, method } = call;
  const key = context.requestHeader.get('idempotency-key');
  if (key === null) return (await commit(undefined)) ? response : undefined;
  if (!isIdempotencyKey(key)) return undefined;
  const answer = { key, fingerprint: fingerprintOf(call), response: toBinary(method.output, response) };
  if (!(await commit(answer).catch(notGuaranteed))) return undefined;
  context.responseHeader.set(REPLAY, 'false');
  return response;
}

function notGuaranteed(error: unknown): never {
  if (!isUnavailable(error)) throw error;
  throw failure('IDEMPOTENCY_NOT_GUARANTEED', 'The idempotency key could not be stored; try again.', {}, error);
}

interface Outcome<Response extends DescMessage> {
  readonly replay: boolean;
  readonly response?: MessageShape<Response>;
  readonly error?: ReturnType<typeof failure>;
}

/** The answer of the operation, stored in the same transaction; or the answer stored before. */
async function runOrReplay<Request extends DescMessage, Response extends DescMessage>(
  call: Call<Request, Response>,
  key: string,
  tx: PoolClient,
  operation: (tx: PoolClient) => Promise<MessageShape<Response>>,
): Promise<Outcome<Response>> {
  const { accountId, method, request } = call;
  const stored = await lockAndFind(tx, accountId, key);
  if (stored) return replayOf(call, stored);
  const record = { account_id: accountId, key, fingerprint: fingerprintOf(call), response: null, error: null };
  await tx.query('savepoint operation');
  try {
    const response = await validated(call, tx, operation);
    await storeAnswer(tx, { ...record, response: toBinary(method.output, response) });
    return { replay: false, response };
  } catch (error) {
    const rejection = readFailure(asFailure(error, { stream: false, method, message: request }));
    if (!STORED_STATUSES.has(REASONS[rejection.reason].http)) throw error;
    await tx.query('rollback to savepoint operation');
    await storeAnswer(tx, { ...record, error: rejection });
    return { replay: false, error: failure(rejection.reason, rejection.message, rejection.details) };
  }
}

function validated<Request extends DescMessage, Response extends DescMessage>(
  { method, request, context, cost = 1 }: Call<Request, Response>,
  tx: PoolClient,
  operation: (tx: PoolClient) => Promise<MessageShape<Response>>,
): Promise<MessageShape<Response>> {
  expectQuota(context, cost - 1);
  expectValid(method.input, request);
  return operation(tx);
}

/**
 * Locks the key for this transaction and returns its record, if any. Throws when it is in flight. Other holders of the lock
 * of a key with a record only replay it, too.
 */
async function lockAndFind(tx: PoolClient, accountId: string, key: string): Promise<StoredAnswer | undefined> {
  const locked = await first(tx, lock, [accountId, key]);
  // A separate statement, so that it sees what the last holder of the lock committed.
  const stored = await first(tx, find, [accountId, key]);
  if (!stored && !locked?.acquired) throw inFlight();
  return stored;
}

/** The record of a call with `finish`, if any. Throws until that has ended: the record has another answer before. */
async function findFinal(on: Queryable, accountId: string, key: string): Promise<StoredAnswer | undefined> {
  if (!(await first(on, findKey, [accountId, key]))) return undefined;
  if (!(await first(on, isUnlocked, [accountId, key]))?.unlocked) throw inFlight();
  return first(on, find, [accountId, key]);
}

/** The stored answer of a call. Throws when its key was used differently. */
function replayOf<Request extends DescMessage, Response extends DescMessage>(
  call: Call<Request, Response>,
  stored: StoredAnswer,
): Outcome<Response> {
  if (Buffer.compare(stored.fingerprint, fingerprintOf(call)) !== 0) throw keyReused();
  return { replay: true, ...answerOf(stored, call.method.output) };
}

/** The 409 of a call whose key was used for another one. */
export function keyReused() {
  return failure('IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used with a different request.');
}

function inFlight() {
  return failure('IDEMPOTENCY_KEY_IN_FLIGHT', 'A request with this Idempotency-Key is still running.');
}

function answerOf<Response extends DescMessage>({ response, error }: StoredAnswer, schema: Response) {
  if (response) return { response: readResponse(schema, response) };
  if (error) return { error: failure(error.reason, error.message, error.details) };
  throw new Error('an idempotency record has neither a response nor an error');
}

/** Fails if it is another method's: gateways never send one fingerprint with two methods, but other callers may. */
function readResponse<Response extends DescMessage>(schema: Response, bytes: Uint8Array): MessageShape<Response> {
  try {
    return fromBinary(schema, bytes);
  } catch {
    throw keyReused();
  }
}

function fingerprintOf<Request extends DescMessage, Response extends DescMessage>(
  call: Call<Request, Response>,
): Buffer {
  const given = call.context.requestHeader.get('idempotency-fingerprint');
  if (given !== null) return Buffer.from(given, 'base64url');
  return createHash('sha256')
    .update(`${methodName(call.method)}\n`)
    .update(toBinary(call.method.input, call.request))
    .digest();
}

/** Deletes all keys older than 24 hours. */
export async function deleteExpiredKeys(pool: Pool): Promise<void> {
  let more: boolean;
  do more = (await run(pool, deleteExpired)).length > 0;
  while (more);
}

/** Index: idempotency_pkey. */
const deleteOfAccount = statement(
  'access_idempotency_delete_of_account',
  'delete from idempotency where account_id = $1',
);

/** Deletes all idempotency keys of an account with the answers stored for replay. `accountId`: UUID. */
export async function deleteIdempotencyKeys(pool: Pool, accountId: string): Promise<void> {
  await run(pool, deleteOfAccount, [accountId]);
}
