import { type DescMethod, isMessage } from '@bufbuild/protobuf';
import type { ContextValues, HandlerContext, Interceptor, StreamRequest, UnaryRequest } from '@connectrpc/connect';
import { metrics } from '@opentelemetry/api';
import ipaddr from 'ipaddr.js';
import type { Pool } from 'pg';
import {
  API_KEY_PREFIX,
  bearerToken,
  invalidApiKey,
  looksLikeApiKey,
  missingApiKey,
} from '../../common/contract/api-key.ts';
import { failure, readFailure } from '../../common/contract/errors.ts';
import { decodeId } from '../../common/contract/ids.ts';
import { KnownKeys } from '../../common/contract/known-keys.ts';
import { fairQueue } from '../../common/queues/fair-queue.ts';
import {
  AdmissionService,
  AuthenticateRequestSchema,
  RefuseRequestSchema,
} from '../../proto/gen/signpost/access/v1/admission_pb.ts';
import { Caller as CallerKind, Cost } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';
import { admit, admitInGroups, checkUnmetered, missingFeature, rejectBeyondQuota } from './admit.ts';
import { hashApiKey } from './api-key.ts';
import { asFailure } from './as-failure.ts';
import { type Caller, callerKey, peerKey, type Rate } from './caller.ts';
import { commitByIn } from './commit-limit.ts';
import { accountById } from './find-account.ts';
import { isForMembers, memberWithRole } from './member-role.ts';
import type { RequestLog } from './request-log.ts';
import { requirementsOf, type StandardCallers, standardService } from './requirements.ts';
import type { ServiceTokens } from './service-token.ts';
import { costOfRows } from './usage.ts';

/**
 * Keys that are not known to be valid: how many are looked up at a time, fairly by the peer's address. A flood of made-up
 * keys would otherwise delay calls with valid keys by as many statements as it has connections.
 */
const UNKNOWN_KEYS = { concurrency: 8, maxWaiting: 2_000, items: 'API keys' };

/** Maximum length of an actor's name in the audit. */
const MAX_ACTOR_LENGTH = 200;

/** The access checks in front of the implementations of all methods. */
export interface Access {
  /**
   * Authenticates a call, checks its plan and rate, and puts the caller into the context: from metadata alone, before
   * anything of the message is read, decompressed or decoded. Throws when the call is rejected.
   */
  readonly admit: (context: HandlerContext) => Promise<void>;
  /**
   * Adds the rate to every answer to a call by API key, errors included, as `ratelimit-limit`, `-remaining` and
   * `-reset`, and Postgres's clock at admission as `signpost-clock`; and adds the call to the account's list of requests.
   */
  readonly interceptor: Interceptor;
}

/**
 * Authentication, plans and rates. Source: docs/contract.md, "Authentication", "Who may call" and "Limits".
 *
 * `methodNamed` finds the method that a request rejected by a gateway was meant for.
 */
export function access(options: {
  pool: Pool;
  tokens: ServiceTokens;
  standardCallers: StandardCallers;
  methodNamed(name: string): DescMethod | undefined;
  requestLog: RequestLog;
}): Access {
  const { pool, tokens, standardCallers, requestLog } = options;
  const knownKeys = new KnownKeys();
  const admitKnown = admitInGroups(pool);
  const inTurn = fairQueue(UNKNOWN_KEYS);
  const admissions = metrics.getMeter('signpost.core').createCounter('signpost.admissions', {
    unit: '{call}',
    description: 'Calls by whether they were admitted, and if not, why',
  });

  /**
   * The actor's name of an internal caller; for a caller that presents something like an API key, that token. Fails with
   * INTERNAL_METHOD if an internal caller names a member and members cannot call the method.
   */
  function identify(method: DescMethod, header: Headers, values: ContextValues): { actor?: string; token: string } {
    const { caller, role } = requirementsOf(method);
    const token = bearerToken(header.get('authorization'));
    // A certificate identifies the caller only if nothing else does.
    const peer = token === undefined ? values.get(peerKey).certificateName : undefined;
    // Only internal callers name an account.
    const meantAsService = caller === CallerKind.SERVICE || header.has('signpost-account');
    if (token === undefined && peer === undefined) throw meantAsService ? missingServiceToken() : missingApiKey();
    if (token === undefined || tokens.has(token)) {
      if (header.has('signpost-member') && !isForMembers(role)) {
        throw failure('INTERNAL_METHOD', 'This method is for internal services; a member cannot call it.');
      }
      return { actor: (header.get('signpost-actor') || peer || 'service').slice(0, MAX_ACTOR_LENGTH), token: '' };
    }
    if (looksLikeApiKey(token)) return { token };
    throw meantAsService || !token.startsWith(API_KEY_PREFIX) ? invalidServiceToken() : invalidApiKey();
  }

  /** Whether anyone at this peer's address may call the method. */
  function isOpen(method: DescMethod, values: ContextValues): boolean {
    const standard = standardService(method);
    if (standard === undefined || standardCallers[standard] === 'nobody') return false;
    return standardCallers[standard] === 'everyone' || isLoopback(values.get(peerKey).address);
  }

  /** `method`: the called method. `target`: the method whose requirements apply. `rows`: those of a batch, if known. */
  async function check(
    method: DescMethod,
    target: DescMethod,
    { header, values, signal, rows }: { header: Headers; values: ContextValues; signal: AbortSignal; rows: number },
  ): Promise<Caller> {
    const receivedAt = performance.now();
    const needs = requirementsOf(target);
    if (isOpen(target, values)) return { kind: 'anyone' };
    const { actor, token } = identify(method, header, values);
    if (actor !== undefined) {
      if (needs.caller === CallerKind.SERVICE) return { kind: 'service', actor };
      const named = header.get('signpost-account') ?? '';
      const id = decodeId('acct', named);
      const account = id === undefined ? undefined : await accountById(pool, id, needs.closedToo);
      if (!account) throw failure('NOT_FOUND', 'Name an open account in `signpost-account`: acct_….');
      const asMember = header.get('signpost-member');
      const member = asMember === null ? undefined : await memberWithRole(pool, account.id, asMember, needs.role);
      const rejection = missingFeature({ ...account, features: { ...account.features, api: true } }, needs.features);
      if (rejection) throw rejection;
      return member ? { kind: 'service', account, member, actor: member.email } : { kind: 'service', account, actor };
    }
    const isKnown = knownKeys.has(token);
    const unmetered = requirementsOf(method).cost === Cost.NOTHING;
    const lookUp = async () => {
      const hash = hashApiKey(token);
      if (unmetered) return checkUnmetered(pool, hash, needs.features);
      const commitBy = commitByIn(header);
      if (needs.cost === Cost.PER_HUNDRED_ROWS) {
        const asked = { cost: costOfRows(rows), idempotencyKey: header.get('idempotency-key') };
        const rejected = await rejectBeyondQuota(pool, hash, needs.features, asked);
        if (rejected) return rejected;
      }
      return isKnown ? admitKnown(hash, needs.features, commitBy) : admit(pool, hash, needs.features, commitBy);
    };
    const admission = await (isKnown ? lookUp() : inTurn(values.get(peerKey).address, signal, lookUp));
    if (!admission) {
      knownKeys.delete(token);
      throw invalidApiKey();
    }
    if (!isKnown) knownKeys.add(token);
    const { account, rate, rejection } = admission;
    if (needs.caller !== CallerKind.ACCOUNT) {
      const message = 'This method is for internal services; an API key cannot call it.';
      throw withRate(failure('INTERNAL_METHOD', message), rate);
    }
    if (rejection) {
      const { reason } = readFailure(rejection);
      requestLog.add({ accountId: account.id, method: target, header, receivedAt, reason });
      throw withRate(rejection, rate);
    }
    return { kind: 'key', account, rate, receivedAt };
  }

  /** Checks a call and counts the result. */
  async function checkAndCount(...call: Parameters<typeof check>): Promise<Caller> {
    try {
      const caller = await check(...call);
      admissions.add(1, { 'signpost.admission.result': 'admitted', 'signpost.caller.kind': caller.kind });
      return caller;
    } catch (error) {
      admissions.add(1, { 'signpost.admission.result': readFailure(asFailure(error)).reason.toLowerCase() });
      throw error;
    }
  }

  return {
    async admit({ method, requestHeader, values, signal }) {
      // These are checked as the method that their message names. Until then, only callers without credentials are
      // rejected.
      if (checkedByMessage(method)) identify(method, requestHeader, values);
      else {
        const call = { header: requestHeader, values, signal, rows: rowsIn(requestHeader) };
        values.set(callerKey, await checkAndCount(method, method, call));
      }
    },
    interceptor: (next) => async (request) => {
      const { contextValues: values, method, header, signal } = request;
      if (checkedByMessage(method)) {
        const target = targetMethod(request, options.methodNamed);
        const rows = !request.stream && isMessage(request.message, RefuseRequestSchema) ? request.message.rows : 0;
        values.set(callerKey, await checkAndCount(method, target, { header, values, signal, rows }));
      }
      const caller = values.get(callerKey);
      if (caller.kind === 'anyone' && !isOpen(method, values)) {
        throw new Error('a call reached the interceptor without admission');
      }
      if (caller.kind !== 'key') return next(request);
      const call = { accountId: caller.account.id, method, header, receivedAt: caller.receivedAt };
      try {
        const response = await next(request);
        writeRate(response.header, caller.rate);
        // The request that was authenticated follows.
        if (method !== AdmissionService.method.authenticate) {
          requestLog.add({ ...call, response: response.stream ? undefined : response.message });
        }
        return response;
      } catch (error) {
        const failed = asFailure(error, request);
        const ended = signal.aborted ? asFailure(signal.reason) : failed;
        requestLog.add({ ...call, reason: readFailure(ended).reason });
        throw withRate(failed, caller.rate);
      }
    },
  };
}

/** Whether a call can be checked only after its message is read, which is then a few kilobytes at most. */
export function checkedByMessage(method: DescMethod): boolean {
  return method === AdmissionService.method.refuse || method === AdmissionService.method.authenticate;
}

/** The number of a batch's rows as gateways announce it, or 0: the rows themselves are read only after admission. */
function rowsIn(header: Headers): number {
  const announced = header.get('signpost-rows') ?? '';
  return /^\d{1,9}$/.test(announced) ? Number(announced) : 0;
}

function targetMethod(
  request: UnaryRequest | StreamRequest,
  methodNamed: (name: string) => DescMethod | undefined,
): DescMethod {
  if (request.stream) return request.method;
  const { message } = request;
  if (!isMessage(message, RefuseRequestSchema) && !isMessage(message, AuthenticateRequestSchema)) return request.method;
  const method = methodNamed(message.method);
  if (!method) throw failure('INVALID_FIELD', 'method: is not a method of this service.');
  return method;
}

function missingServiceToken() {
  return failure('INVALID_SERVICE_TOKEN', 'The service token is needed: `authorization: Bearer $SERVICE_TOKEN`.');
}

function invalidServiceToken() {
  return failure('INVALID_SERVICE_TOKEN', 'This is neither the service token nor an API key.');
}

/** `address`: empty if the connection is closed already. */
function isLoopback(address: string): boolean {
  return ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback';
}

function withRate(error: ReturnType<typeof failure>, rate: Rate) {
  writeRate(error.metadata, rate);
  return error;
}

function writeRate(headers: Headers, { limit, used, reset, clock }: Rate): void {
  headers.set('ratelimit-limit', limit === null ? 'unlimited' : String(limit));
  headers.set('ratelimit-remaining', limit === null ? 'unlimited' : String(Math.max(0, limit - used)));
  headers.set('ratelimit-reset', String(reset));
  headers.set('signpost-clock', clock);
}
