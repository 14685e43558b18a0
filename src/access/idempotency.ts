import { createHash } from 'node:crypto';
import { type DescMessage, type DescMethodUnary, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import type { Pool, PoolClient } from 'pg';
import { failure, REASONS, type Reason, readFailure } from '../../common/contract/errors.ts';
import { first, run, statement, withConnection } from '../../common/postgres/sql.ts';
import { isUnavailable } from '../../common/postgres/unavailable.ts';
import { asFailure } from './as-failure.ts';
import { transactionOf } from './commit-limit.ts';
import { expectValid } from './validator.ts';

/** 1–255 visible ASCII characters. Source: docs/contract.md, "Idempotency". */
const KEY = /^[\x21-\x7e]{1,255}$/;

/** Whether the value of `Idempotency-Key` is one. */
export function isIdempotencyKey(key: string): boolean {
  return KEY.test(key);
}

/** Answers that are remembered and replayed; a retry of any other runs again. */
const REMEMBERED = new Set([400, 403, 413]);

interface RecordRow {
  fingerprint: Buffer;
  response: Buffer | null;
  error: { reason: Reason; message: string; details: Record<string, string> } | null;
}

/** Held until the transaction ends, so a crash leaves nothing behind. Whoever doesn't get it is answered "in flight". */
const lock = statement<{ mine: boolean }>(
  'access_idempotency_lock',
  `select pg_try_advisory_xact_lock(hashtextextended($1 || ' ' || $2, 0)) as mine`,
);

/** The same lock, held by the connection over several transactions until it is released or the connection breaks. */
const hold = statement<{ mine: boolean }>(
  'access_idempotency_hold',
  `select pg_try_advisory_lock(hashtextextended($1 || ' ' || $2, 0)) as mine`,
);

const release = statement(
  'access_idempotency_release',
  `select pg_advisory_unlock(hashtextextended($1 || ' ' || $2, 0))`,
);

/** Index: idempotency_pkey. */
const find = statement<RecordRow>(
  'access_idempotency_find',
  `select fingerprint, response, error from idempotency
   where account_id = $1 and key = $2 and created_at > now() - interval '24 hours'`,
);

/** Replaces a record that is older than 24 hours and not yet swept. */
const remember = statement(
  'access_idempotency_remember',
  `insert into idempotency (account_id, key, fingerprint, response, error) values ($1, $2, $3, $4, $5)
   on conflict (account_id, key) do update
   set fingerprint = excluded.fingerprint, response = excluded.response, error = excluded.error, created_at = now()`,
);

/** Index: idempotency_pkey. */
const amend = statement(
  'access_idempotency_amend',
  'update idempotency set response = $3 where account_id = $1 and key = $2',
);

/** Index: idempotency_age. */
const sweep = statement(
  'access_idempotency_sweep',
  `delete from idempotency where (account_id, key) in
     (select account_id, key from idempotency where created_at <= now() - interval '24 hours' limit 5000)`,
);

/** A call that may carry an idempotency key. */
export interface Call<Request extends DescMessage, Response extends DescMessage> {
  readonly pool: Pool;
  /** UUID. */
  readonly accountId: string;
  readonly context: HandlerContext;
  readonly method: DescMethodUnary<Request, Response>;
  readonly request: MessageShape<Request>;
}

/**
 * Runs `operation` in a transaction, and at most once for an idempotency key of the account: a second call with the
 * same key and body gets the first one's answer, error or not, marked `idempotent-replay: true`. The record commits
 * with what it remembers.
 *
 * `finish` goes on once that has committed and gives the answer that is remembered instead; the key stays in flight
 * meanwhile, and holds a connection. Where the process dies on the way, the answer of `operation` is the one that is replayed.
 *
 * Metadata read: `idempotency-key`; `idempotency-fingerprint`, what makes two bodies the same (the gateway's hash of
 * method, path and raw body; otherwise the request itself is hashed).
 */
export async function once<Request extends DescMessage, Response extends DescMessage>(
  call: Call<Request, Response>,
  operation: (tx: PoolClient) => Promise<MessageShape<Response>>,
  finish?: (done: MessageShape<Response>) => Promise<MessageShape<Response>>,
): Promise<MessageShape<Response>> {
  const { pool, accountId, context } = call;
  const key = context.requestHeader.get('idempotency-key');
  if (key === null) {
    const response = await transactionOf(context, pool, (tx) => validated(call, tx, operation));
    return finish ? finish(response) : response;
  }
  if (!isIdempotencyKey(key)) {
    throw failure('INVALID_IDEMPOTENCY_KEY', 'Idempotency-Key must be 1 to 255 visible ASCII characters.');
  }
  const outcome = await withConnection(pool, async (connection) => {
    if (!finish) return transactionOf(context, connection, (tx) => runOrRecall(call, key, tx, operation));
    if (!(await first(connection.client, hold, [accountId, key]))?.mine) throw inFlight();
    try {
      const made = await transactionOf(context, connection, (tx) => runOrRecall(call, key, tx, operation));
      if (made.replay || !made.response) return made;
      const response = await finish(made.response);
      await run(connection.client, amend, [accountId, key, toBinary(call.method.output, response)]);
      return { ...made, response };
    } finally {
      await run(connection.client, release, [accountId, key]).catch(connection.markBroken);
    }
  }).catch((error: unknown) => {
    if (!isUnavailable(error)) throw error;
    throw failure('IDEMPOTENCY_NOT_GUARANTEED', 'The idempotency key could not be kept; try again.', {}, error);
  });

  const replay = String(outcome.replay);
  if (outcome.response) {
    context.responseHeader.set('idempotent-replay', replay);
    return outcome.response;
  }
  outcome.error?.metadata.set('idempotent-replay', replay);
  throw outcome.error;
}

interface Outcome<Response extends DescMessage> {
  readonly replay: boolean;
  readonly response?: MessageShape<Response>;
  readonly error?: ReturnType<typeof failure>;
}

/** The answer of the operation, remembered in the same transaction; or what was remembered before. */
async function runOrRecall<Request extends DescMessage, Response extends DescMessage>(
  call: Call<Request, Response>,
  key: string,
  tx: PoolClient,
  operation: (tx: PoolClient) => Promise<MessageShape<Response>>,
): Promise<Outcome<Response>> {
  const { accountId, method } = call;
  const fingerprint = fingerprintOf(call);
  const known = await recall(tx, accountId, key, fingerprint);
  if (known) return { replay: true, ...answerOf(known, method.output) };
  await tx.query('savepoint operation');
  try {
    const response = await validated(call, tx, operation);
    await run(tx, remember, [accountId, key, fingerprint, toBinary(method.output, response), null]);
    return { replay: false, response };
  } catch (error) {
    const refused = readFailure(asFailure(error));
    if (!REMEMBERED.has(REASONS[refused.reason].http)) throw error;
    await tx.query('rollback to savepoint operation');
    await run(tx, remember, [accountId, key, fingerprint, null, JSON.stringify(refused)]);
    return { replay: false, error: failure(refused.reason, refused.message, refused.details) };
  }
}

function validated<Request extends DescMessage, Response extends DescMessage>(
  { method, request }: Call<Request, Response>,
  tx: PoolClient,
  operation: (tx: PoolClient) => Promise<MessageShape<Response>>,
): Promise<MessageShape<Response>> {
  expectValid(method.input, request);
  return operation(tx);
}

/** Takes the key for this transaction; the record when there is one. Throws when it can't be had or was used otherwise. */
async function recall(
  tx: PoolClient,
  accountId: string,
  key: string,
  fingerprint: Buffer,
): Promise<RecordRow | undefined> {
  if (!(await first(tx, lock, [accountId, key]))?.mine) throw inFlight();
  // A statement of its own: it has to see what the last holder of the lock committed.
  const known = await first(tx, find, [accountId, key]);
  if (known && !known.fingerprint.equals(fingerprint)) {
    throw failure('IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used with a different request.');
  }
  return known;
}

function inFlight() {
  return failure('IDEMPOTENCY_KEY_IN_FLIGHT', 'A request with this Idempotency-Key is still running.');
}

function answerOf<Response extends DescMessage>({ response, error }: RecordRow, schema: Response) {
  if (response) return { response: fromBinary(schema, response) };
  if (error) return { error: failure(error.reason, error.message, error.details) };
  throw new Error('an idempotency record holds neither a response nor an error');
}

function fingerprintOf<Request extends DescMessage, Response extends DescMessage>(
  call: Call<Request, Response>,
): Buffer {
  const given = call.context.requestHeader.get('idempotency-fingerprint');
  if (given !== null) return Buffer.from(given, 'base64url');
  return createHash('sha256')
    .update(`${call.method.parent.typeName}/${call.method.name}\n`)
    .update(toBinary(call.method.input, call.request))
    .digest();
}

/** Forgets keys that are older than 24 hours, some at a time. */
export async function sweepIdempotency(pool: Pool): Promise<void> {
  await run(pool, sweep);
}

/** Index: idempotency_pkey. */
const forget = statement('access_idempotency_forget', 'delete from idempotency where account_id = $1');

/** Forgets all keys of an account, and with them the answers that were kept for a replay. `accountId`: UUID. */
export async function forgetIdempotency(pool: Pool, accountId: string): Promise<void> {
  await run(pool, forget, [accountId]);
}
