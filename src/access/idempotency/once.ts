import { createHash } from 'node:crypto';
import { type DescMessage, type DescMethodUnary, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf';
import type { HandlerContext } from '@connectrpc/connect';
import type { Pool, PoolClient } from 'pg';
import { failure, REASONS, readFailure } from '../../../common/contract/errors.ts';
import { METADATA } from '../../../common/contract/metadata.ts';
import { methodName } from '../../../common/contract/method-name.ts';
import { withConnection } from '../../../common/postgres/sql.ts';
import { isUnavailable } from '../../../common/postgres/unavailable.ts';
import { asFailure } from '../../calls/as-failure.ts';
import { expectValid } from '../../calls/validator.ts';
import { storable } from '../../db/storable.ts';
import { inAccountQueue } from '../account-queue.ts';
import { transactionOf } from '../call-transaction.ts';
import { expectQuota } from '../usage.ts';
import {
  findFinal,
  type KeyedAnswer,
  lockAndFind,
  replaceStored,
  type StoredAnswer,
  storeAnswer,
  withKeyLocked,
} from './key-records.ts';

/** 1–255 visible ASCII characters. Source: docs/contract.md, "Idempotency". */
const KEY = /^[\x21-\x7e]{1,255}$/;

/** Whether the value of an `Idempotency-Key` is valid. */
export function isIdempotencyKey(key: string): boolean {
  return KEY.test(key);
}

/** HTTP statuses of errors that are stored and replayed; after any other error a retry runs again. */
const STORED_STATUSES = new Set([400, 403, 413]);

/** A call that may carry an idempotency key. */
export interface Call<Request extends DescMessage, Response extends DescMessage> {
  readonly pool: Pool;
  /** UUID. */
  readonly accountId: string;
  readonly context: HandlerContext;
  readonly method: DescMethodUnary<Request, Response>;
  readonly request: MessageShape<Request>;
  /** Cost in requests, default 1. Insufficient quota is reported before errors of the request. */
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
  const key = context.requestHeader.get(METADATA.idempotencyKey);
  if (key === null) {
    const response = await transactionOf(context, pool, (tx) => validated(call, tx, operation));
    return finish ? finish(response) : response;
  }
  try {
    return await onceWithKey(call, key, operation, finish);
  } catch (error) {
    const failed = asFailure(error, { stream: false, method: call.method, message: call.request });
    if (!failed.metadata.has(METADATA.replay)) failed.metadata.set(METADATA.replay, 'false');
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
  const outcome = await inAccountQueue(context, (endTurn) =>
    withConnection(pool, async (connection) => {
      if (!finish) return transactionOf(context, connection, (tx) => runOrReplay(call, key, tx, operation));
      const final = await findFinal(connection.client, accountId, key);
      if (final) return replayOf(call, final);
      return withKeyLocked(connection, accountId, key, async () => {
        const done = await transactionOf(context, connection, (tx) => runOrReplay(call, key, tx, operation));
        if (done.replay || !done.response) return done;
        endTurn();
        const response = await finish(done.response);
        await replaceStored(connection.client, accountId, key, toBinary(call.method.output, response));
        return { ...done, response };
      });
    }),
  ).catch(notGuaranteed);

  const replay = String(outcome.replay);
  if (outcome.response) {
    context.responseHeader.set(METADATA.replay, replay);
    return outcome.response;
  }
  outcome.error?.metadata.set(METADATA.replay, replay);
  throw outcome.error;
}

/**
 * Runs a call whose answer is known before it takes effect in a transaction with other calls. `commit` stores the
 * answer under the key, if there is one, and commits; it resolves to whether it did. Resolves to undefined if it did
 * not, or if the key is invalid: `once` then answers the call, from what is stored for its key if anything is.
 */
export async function onceTogether<Request extends DescMessage, Response extends DescMessage>(
  call: Call<Request, Response>,
  response: MessageShape<Response>,
  commit: (answer: KeyedAnswer | undefined) => Promise<boolean>,
): Promise<MessageShape<Response> | undefined> {
  const { context, method } = call;
  const key = context.requestHeader.get(METADATA.idempotencyKey);
  if (key === null) return (await commit(undefined)) ? response : undefined;
  if (!isIdempotencyKey(key)) return undefined;
  const answer = { key, fingerprint: fingerprintOf(call), response: toBinary(method.output, response) };
  if (!(await commit(answer).catch(notGuaranteed))) return undefined;
  context.responseHeader.set(METADATA.replay, 'false');
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
    const { reason, message, details } = readFailure(asFailure(error, { stream: false, method, message: request }));
    if (!STORED_STATUSES.has(REASONS[reason].http)) throw error;
    await tx.query('rollback to savepoint operation');
    const rejection = { reason, message: storable(message), details };
    await storeAnswer(tx, { ...record, error: rejection });
    return { replay: false, error: failure(reason, rejection.message, details) };
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
  const given = call.context.requestHeader.get(METADATA.fingerprint);
  if (given !== null) return Buffer.from(given, 'base64url');
  return createHash('sha256')
    .update(`${methodName(call.method)}\n`)
    .update(toBinary(call.method.input, call.request))
    .digest();
}
