import { type DescMethod, isMessage } from '@bufbuild/protobuf';
import type { Interceptor, StreamRequest, UnaryRequest } from '@connectrpc/connect';
import type { Pool } from 'pg';
import { AuthenticateRequestSchema, RefuseRequestSchema } from '../../proto/gen/signpost/access/v1/admission_pb.ts';
import { Caller as CallerKind, Cost } from '../../proto/gen/signpost/access/v1/requirements_pb.ts';
import { bearerToken, invalidApiKey, looksLikeApiKey, missingApiKey } from '../contract/api-key.ts';
import { asFailure } from '../contract/as-failure.ts';
import { failure } from '../contract/errors.ts';
import { decodeId } from '../contract/ids.ts';
import { accountById, admit, type Judged, judgeUnmetered, lacking } from './admit.ts';
import { hashApiKey } from './api-key.ts';
import { type Caller, callerKey, peerKey, type Rate } from './caller.ts';
import { requirementsOf } from './requirements.ts';
import type { ServiceTokens } from './service-token.ts';

/** Longest name of an actor that the audit keeps. */
const MOST_ACTOR = 200;

interface Admission {
  readonly caller: Caller;
  /** Only calls by key are judged by plan and rate. */
  readonly judged?: Judged;
}

/**
 * Authenticates every call, judges plan and rate, and puts the caller into the context. Answers to calls by key carry
 * `ratelimit-limit`, `ratelimit-remaining` and `ratelimit-reset`, errors too. Source: contract, Authentication; Limits.
 *
 * `methodNamed` finds the method that a request is meant for which the gateway asks about.
 */
export function access(options: {
  pool: Pool;
  tokens: ServiceTokens;
  methodNamed(name: string): DescMethod | undefined;
}): Interceptor {
  const { pool, tokens } = options;

  async function judge(request: UnaryRequest | StreamRequest): Promise<Admission> {
    const needs = requirementsOf(judgedMethod(request, options.methodNamed));
    if (needs.caller === CallerKind.ANYONE) return { caller: { kind: 'anyone' } };
    const token = bearerToken(request.header.get('authorization'));
    // A certificate says who is calling only where nothing else does.
    const peer = token === undefined ? request.contextValues.get(peerKey) : undefined;
    if (token === undefined && peer === undefined) throw missingApiKey();

    if (token === undefined || tokens.has(token)) {
      const actor = (request.header.get('signpost-actor') || peer || 'service').slice(0, MOST_ACTOR);
      if (needs.caller === CallerKind.SERVICE) return { caller: { kind: 'service', actor } };
      const named = request.header.get('signpost-account') ?? '';
      const id = decodeId('acct', named);
      const account = id === undefined ? undefined : await accountById(pool, id, needs.closedToo);
      if (!account) throw failure('NOT_FOUND', 'Name an open account in `signpost-account`: acct_….');
      const refusal = lacking({ ...account, features: { ...account.features, api: true } }, needs.features);
      if (refusal) throw refusal;
      return { caller: { kind: 'service', account, actor } };
    }

    const isMetered = requirementsOf(request.method).cost !== Cost.NOTHING;
    const judgeKey = isMetered ? admit : judgeUnmetered;
    const judged = looksLikeApiKey(token) ? await judgeKey(pool, hashApiKey(token), needs.features) : undefined;
    if (!judged) throw invalidApiKey();
    if (needs.caller !== CallerKind.ACCOUNT) {
      throw failure('INTERNAL_METHOD', 'This method is for internal services; an API key does not open it.');
    }
    return { caller: { kind: 'key', account: judged.account, rate: judged.rate }, judged };
  }

  return (next) => async (request) => {
    const { caller, judged } = await judge(request);
    if (judged?.refusal) throw withRate(judged.refusal, judged.rate);
    request.contextValues.set(callerKey, caller);
    if (!judged) return next(request);
    try {
      const response = await next(request);
      writeRate(response.header, judged.rate);
      return response;
    } catch (error) {
      throw withRate(asFailure(error), judged.rate);
    }
  };
}

/** What the gateway asks about a request is judged as the method that it is meant for; every other call as its own. */
function judgedMethod(
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

function writeRate(headers: Headers, { limit, used, reset }: Rate): void {
  headers.set('ratelimit-limit', limit === null ? 'unlimited' : String(limit));
  headers.set('ratelimit-remaining', limit === null ? 'unlimited' : String(Math.max(0, limit - used)));
  headers.set('ratelimit-reset', String(reset));
}
