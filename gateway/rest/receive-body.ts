import type { CallOptions } from '@connectrpc/connect';
import type { FastifyReply } from 'fastify';
import type { CoreClients } from '../core.ts';
import { type BodyMemory, tooBusy } from './body-memory.ts';
import { expectCaller, whileWaitedFor } from './caller-left.ts';
import type { Endpoint, RequestBody } from './endpoint.ts';
import { BodyTooLarge, type IncomingBody } from './incoming-body.ts';
import { fullName } from './refusal.ts';
import type { RequestLimits } from './request-limits.ts';

/** Where bodies are received. */
export interface Receiving {
  readonly core: CoreClients;
  readonly limits: RequestLimits;
  readonly memory: BodyMemory;
}

/** A request whose body is to be received. */
export interface Received {
  readonly rpc: Endpoint['rpc'];
  readonly body: RequestBody<unknown>;
  readonly incoming: IncomingBody;
  readonly reply: FastifyReply;
  /** Of the call that the request becomes. */
  readonly options: CallOptions;
  /** Told of every body before it is parsed. */
  onRaw(raw: Buffer): void;
  /** Given what gives the body's memory back, once the request has been answered. */
  readonly held: DisposableStack;
}

/**
 * The body as its endpoint reads it. A small one is read at once: the call that it becomes authenticates its caller. Any
 * other, or one whose client wants to be told to go on, is not read before the core has authenticated the caller and
 * there is memory for it, and is not parsed when the caller has left by then. Rejects with what the request is answered
 * with instead.
 */
export async function receiveBody({ core, limits, memory }: Receiving, request: Received): Promise<unknown> {
  const { body, incoming, reply, options, onRaw } = request;
  const { declaredBytes } = incoming;
  if (declaredBytes > body.maxBytes && declaredBytes !== Infinity) throw new BodyTooLarge(body.maxBytes);
  if (declaredBytes <= body.bytesBeforeAuthentication && !incoming.awaitsContinue) {
    const raw = await incoming.read(body.maxBytes, limits.bodyMs);
    onRaw(raw);
    return body.read(raw, { account: '', signal: undefined });
  }

  const waiting = whileWaitedFor(reply);
  const { signal } = waiting;
  const { accountId: account } = await core.admission.authenticate(
    { method: fullName(request.rpc) },
    { ...options, signal },
  );
  const bytes = Math.min(declaredBytes, body.maxBytes);
  request.held.defer(await atMost(limits.waitMs, waiting, memory.take(account, bytes, signal)));
  const raw = await incoming.read(body.maxBytes, limits.bodyMs);
  onRaw(raw);
  const parsed = await atMost(limits.waitMs, waiting, body.read(raw, { account, signal }));
  // Nothing has been charged or changed yet, and nobody would hear of it.
  expectCaller(reply);
  return parsed;
}

/** Aborts `waiting` after `ms`, so that work which has not begun by then is a 503. */
async function atMost<Result>(ms: number, waiting: AbortController, work: Promise<Result>): Promise<Result> {
  const timer = setTimeout(() => waiting.abort(tooBusy()), ms);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}
