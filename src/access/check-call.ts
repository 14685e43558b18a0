import type { DescMethod } from '@bufbuild/protobuf';
import { ConnectError, type ContextValues } from '@connectrpc/connect';
import type { Pool } from 'pg';
import { invalidApiKey } from '../../common/contract/api-key.ts';
import { failure, readFailure } from '../../common/contract/errors.ts';
import { decodeId } from '../../common/contract/ids.ts';
import { KnownKeys } from '../../common/contract/known-keys.ts';
import { METADATA } from '../../common/contract/metadata.ts';
import { clientOf } from '../../common/http/client-of.ts';
import { fairQueue } from '../../common/queues/fair-queue.ts';
import { Caller as CallerKind, Cost } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';
import { type Admission, admit, checkUnmetered, missingFeature, rejectBeyondQuota } from './admit.ts';
import { admitInGroups } from './admit-in-groups.ts';
import { hashApiKey } from './api-key.ts';
import { readCommitBy } from './call-transaction.ts';
import { type Caller, peerKey } from './caller.ts';
import { accountById } from './find-account.ts';
import { identify, needsNoToken } from './identify.ts';
import { memberWithRole } from './member-role.ts';
import { withRate } from './rate-metadata.ts';
import type { RequestLog } from './request-log.ts';
import { requirementsOf, type StandardCallers } from './requirements.ts';
import type { ServiceTokens } from './service-token.ts';
import { costOfRows } from './usage.ts';

/**
 * Keys that are not known to be valid: how many are looked up at a time, fairly by client. A flood of made-up keys
 * would otherwise delay calls with valid keys by as many statements as it has connections.
 */
const UNKNOWN_KEYS = { concurrency: 8, maxWaiting: 2_000, items: 'API keys' };

/** A call, as far as it is known before its message is read. */
export interface IncomingCall {
  readonly method: DescMethod;
  /** The method whose requirements apply. */
  readonly checkedAs: DescMethod;
  readonly header: Headers;
  readonly values: ContextValues;
  readonly signal: AbortSignal;
  /** The number of a batch's rows; 0 if it is not known. */
  readonly rows: number;
}

/** What checks of calls need. */
export interface CheckOptions {
  readonly pool: Pool;
  readonly tokens: ServiceTokens;
  readonly standardCallers: StandardCallers;
  readonly requestLog: RequestLog;
}

/**
 * Returns a function that authenticates a call and checks its plan and rate. It rejects if the call is not admitted.
 */
export function callChecker(options: CheckOptions): (call: IncomingCall) => Promise<Caller> {
  const { pool, tokens, standardCallers, requestLog } = options;
  const knownKeys = new KnownKeys();
  const admitKnown = admitInGroups(pool);
  const inTurn = fairQueue(UNKNOWN_KEYS);

  /** Looks up a key, and meters the call unless it costs nothing. Undefined if the key is invalid. */
  async function admission(call: IncomingCall, token: string, isKnown: boolean): Promise<Admission | undefined> {
    const { method, checkedAs, header, rows } = call;
    const { features, cost } = requirementsOf(checkedAs);
    const hash = hashApiKey(token);
    if (requirementsOf(method).cost === Cost.NOTHING) return checkUnmetered(pool, hash, features);
    const commitBy = readCommitBy(header);
    if (commitBy instanceof ConnectError) {
      const checked = await checkUnmetered(pool, hash, features);
      return checked && { ...checked, rejection: checked.rejection ?? commitBy };
    }
    if (cost === Cost.PER_HUNDRED_ROWS) {
      const asked = { cost: costOfRows(rows), idempotencyKey: header.get(METADATA.idempotencyKey) };
      const rejected = await rejectBeyondQuota(pool, hash, features, asked);
      if (rejected) return rejected;
    }
    return isKnown ? admitKnown(hash, features, commitBy) : admit(pool, hash, features, commitBy);
  }

  async function checkKey(call: IncomingCall, token: string, receivedAt: number): Promise<Caller> {
    const { checkedAs, header, values, signal } = call;
    const isKnown = knownKeys.has(token);
    const lookUp = () => admission(call, token, isKnown);
    const found = await (isKnown ? lookUp() : inTurn(clientOf(values.get(peerKey).address), signal, lookUp));
    if (!found) {
      knownKeys.delete(token);
      throw invalidApiKey();
    }
    if (!isKnown) knownKeys.add(token);
    const { account, rate, rejection } = found;
    if (requirementsOf(checkedAs).caller !== CallerKind.ACCOUNT) {
      const message = 'This method is for internal services; an API key cannot call it.';
      throw withRate(failure('INTERNAL_METHOD', message), rate);
    }
    if (rejection) {
      const { reason } = readFailure(rejection);
      requestLog.add({ accountId: account.id, method: checkedAs, header, receivedAt, reason });
      throw withRate(rejection, rate);
    }
    return { kind: 'key', account, rate, receivedAt };
  }

  return async (call) => {
    const receivedAt = performance.now();
    const { method, checkedAs, header, values } = call;
    if (needsNoToken(checkedAs, values, standardCallers)) return { kind: 'anyone' };
    const identity = identify(method, header, values, tokens);
    if ('token' in identity) return checkKey(call, identity.token, receivedAt);
    return checkInternal(pool, checkedAs, header, identity.actor);
  };
}

/** Checks a call of an internal service: the account and the member that it acts for, if the method needs one. */
async function checkInternal(pool: Pool, checkedAs: DescMethod, header: Headers, actor: string): Promise<Caller> {
  const { caller, closedToo, features, role } = requirementsOf(checkedAs);
  if (caller === CallerKind.SERVICE) return { kind: 'service', actor };
  const id = decodeId('acct', header.get(METADATA.account) ?? '');
  const account = id === undefined ? undefined : await accountById(pool, id, closedToo);
  if (!account) throw failure('NOT_FOUND', 'Name an open account in `signpost-account`: acct_….');
  const named = header.get(METADATA.member);
  const member = named === null ? undefined : await memberWithRole(pool, account.id, named, role);
  const rejection = missingFeature({ ...account, features: { ...account.features, api: true } }, features);
  if (rejection) throw rejection;
  return member ? { kind: 'service', account, member, actor: member.email } : { kind: 'service', account, actor };
}
