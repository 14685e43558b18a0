import { type DescMethod, isMessage } from '@bufbuild/protobuf';
import type { ContextValues, HandlerContext, Interceptor, StreamRequest, UnaryRequest } from '@connectrpc/connect';
import type { Pool } from 'pg';
import { bearerToken, invalidApiKey, looksLikeApiKey, missingApiKey } from '../../common/contract/api-key.ts';
import { failure } from '../../common/contract/errors.ts';
import { decodeId } from '../../common/contract/ids.ts';
import {
  AdmissionService,
  AuthenticateRequestSchema,
  RefuseRequestSchema,
} from '../../proto/gen/signpost/access/v1/admission_pb.ts';
import { Caller as CallerKind, Cost } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';
import { accountById, admit, judgeUnmetered, lacking } from './admit.ts';
import { hashApiKey } from './api-key.ts';
import { asFailure } from './as-failure.ts';
import { type Caller, callerKey, peerKey, type Rate } from './caller.ts';
import { commitByIn } from './commit-limit.ts';
import { requirementsOf } from './requirements.ts';
import type { ServiceTokens } from './service-token.ts';

/** Longest name of an actor that the audit keeps. */
const MOST_ACTOR = 200;

/** What stands before the implementations of all methods. */
export interface Access {
  /**
   * Authenticates a call, judges its plan and its rate, and puts the caller into the context: from the metadata alone,
   * before anything of the message is read, decompressed or decoded. Throws when the call is refused.
   */
  readonly admit: (context: HandlerContext) => Promise<void>;
  /**
   * Tells the rate with every answer to a call by key, errors too, as `ratelimit-limit`, `-remaining` and `-reset`, and
   * what Postgres's clock said when it was judged, as `signpost-clock`.
   */
  readonly interceptor: Interceptor;
}

/**
 * Authentication, plans and rates. Source: docs/contract.md, "Authentication"; Limits.
 *
 * `methodNamed` finds the method that a refused request was meant for.
 */
export function access(options: {
  pool: Pool;
  tokens: ServiceTokens;
  methodNamed(name: string): DescMethod | undefined;
}): Access {
  const { pool, tokens } = options;

  /** What an internal caller is called; undefined for a caller with something like an API key. */
  function internalName(header: Headers, values: ContextValues): { actor?: string; token: string } {
    const token = bearerToken(header.get('authorization'));
    // A certificate says who is calling only where nothing else does.
    const peer = token === undefined ? values.get(peerKey) : undefined;
    if (token === undefined && peer === undefined) throw missingApiKey();
    if (token === undefined || tokens.has(token)) {
      return { actor: (header.get('signpost-actor') || peer || 'service').slice(0, MOST_ACTOR), token: '' };
    }
    if (!looksLikeApiKey(token)) throw invalidApiKey();
    return { token };
  }

  /** `method`: what is called. `meant`: the method that it is judged as. */
  async function judge(method: DescMethod, meant: DescMethod, header: Headers, values: ContextValues): Promise<Caller> {
    const needs = requirementsOf(meant);
    if (needs.caller === CallerKind.ANYONE) return { kind: 'anyone' };
    const { actor, token } = internalName(header, values);
    if (actor !== undefined) {
      if (needs.caller === CallerKind.SERVICE) return { kind: 'service', actor };
      const named = header.get('signpost-account') ?? '';
      const id = decodeId('acct', named);
      const account = id === undefined ? undefined : await accountById(pool, id, needs.closedToo);
      if (!account) throw failure('NOT_FOUND', 'Name an open account in `signpost-account`: acct_….');
      const refusal = lacking({ ...account, features: { ...account.features, api: true } }, needs.features);
      if (refusal) throw refusal;
      return { kind: 'service', account, actor };
    }
    const unmetered = requirementsOf(method).cost === Cost.NOTHING;
    const judged = unmetered
      ? await judgeUnmetered(pool, hashApiKey(token), needs.features)
      : await admit(pool, hashApiKey(token), needs.features, commitByIn(header));
    if (!judged) throw invalidApiKey();
    if (needs.caller !== CallerKind.ACCOUNT) {
      throw failure('INTERNAL_METHOD', 'This method is for internal services; an API key does not open it.');
    }
    if (judged.refusal) throw withRate(judged.refusal, judged.rate);
    return { kind: 'key', account: judged.account, rate: judged.rate };
  }

  return {
    async admit({ method, requestHeader, values }) {
      // It is judged as the method that its message names. Until then: whoever can't be a caller, is none.
      if (judgedByMessage(method)) internalName(requestHeader, values);
      else values.set(callerKey, await judge(method, method, requestHeader, values));
    },
    interceptor: (next) => async (request) => {
      const { contextValues: values, method, header } = request;
      if (judgedByMessage(method)) {
        values.set(callerKey, await judge(method, meantMethod(request, options.methodNamed), header, values));
      }
      const caller = values.get(callerKey);
      if (caller.kind === 'anyone' && requirementsOf(method).caller !== CallerKind.ANYONE) {
        throw new Error('a call has come this far that nobody has judged');
      }
      if (caller.kind !== 'key') return next(request);
      try {
        const response = await next(request);
        writeRate(response.header, caller.rate);
        return response;
      } catch (error) {
        throw withRate(asFailure(error), caller.rate);
      }
    },
  };
}

/** Whether a call can be judged only once its message is read. The message is then a few kilobytes at most. */
export function judgedByMessage(method: DescMethod): boolean {
  return method === AdmissionService.method.refuse || method === AdmissionService.method.authenticate;
}

function meantMethod(
  request: UnaryRequest | StreamRequest,
  methodNamed: (name: string) => DescMethod | undefined,
): DescMethod {
  if (request.stream) return request.method;
  const { message } = request;
  if (!isMessage(message, RefuseRequestSchema) && !isMessage(message, AuthenticateRequestSchema)) return request.method;
  const method = methodNamed(message.method);
  if (!method) throw failure('INVALID_FIELD', 'method: names no method of this service.');
  return method;
}

function withRate(error: ReturnType<typeof failure>, rate: Rate) {
  writeRate(error.metadata, rate);
  return error;
}

function writeRate(headers: Headers, { limit, used, reset, judgedAt }: Rate): void {
  headers.set('ratelimit-limit', limit === null ? 'unlimited' : String(limit));
  headers.set('ratelimit-remaining', limit === null ? 'unlimited' : String(Math.max(0, limit - used)));
  headers.set('ratelimit-reset', String(reset));
  headers.set('signpost-clock', judgedAt);
}
