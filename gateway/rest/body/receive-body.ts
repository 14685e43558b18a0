import type { FastifyReply } from 'fastify';
import { type BodyMemory, tooBusy } from '../../../common/queues/body-memory.ts';
import { abortOnDisconnect, expectConnected } from '../caller-disconnect.ts';
import type { RequestBody } from '../endpoint.ts';
import type { IncomingBody } from './incoming-body.ts';
import type { RequestLimits } from './request-limits.ts';

/** What receiving bodies needs. */
export interface Receiving {
  readonly limits: RequestLimits;
  readonly memory: BodyMemory;
}

/** A request whose body is to be received. */
export interface Received {
  readonly body: Pick<RequestBody<unknown>, 'maxBytes' | 'bytesBeforeAuthentication' | 'read'>;
  readonly incoming: IncomingBody;
  readonly reply: FastifyReply;
  /** Resolves with the caller's account, `acct_…`; rejects if the core does not authenticate the caller. */
  authenticate(signal: AbortSignal): Promise<string>;
  /** Called with the raw body before it is parsed. */
  onRaw(raw: Buffer): void;
  /** Releases the body's memory once the request was answered. */
  readonly held: DisposableStack;
}

/**
 * Reads and parses a body. A small one is read at once: the endpoint's RPC authenticates the caller. A larger one, or
 * one whose client waits for a 100, is not read before the core has authenticated the caller and its memory is
 * reserved, and not parsed if the caller has disconnected by then. Rejects with the error to respond with.
 */
export async function receiveBody({ limits, memory }: Receiving, request: Received): Promise<unknown> {
  const { body, incoming, reply, onRaw } = request;
  const { declaredBytes } = incoming;
  incoming.expectAtMost(body.maxBytes);
  if (declaredBytes <= body.bytesBeforeAuthentication && !incoming.awaitsContinue) {
    const raw = await incoming.read(body.maxBytes, limits.bodyMs);
    onRaw(raw);
    return body.read(raw, { account: '', signal: undefined });
  }

  const waiting = abortOnDisconnect(reply);
  const { signal } = waiting;
  const account = await request.authenticate(signal);
  const bytes = Math.min(declaredBytes, body.maxBytes);
  request.held.defer(await memory.take(account, bytes, signal));
  const raw = await incoming.read(body.maxBytes, limits.bodyMs);
  onRaw(raw);
  const parsed = await atMost(limits.waitMs, waiting, body.read(raw, { account, signal }));
  // Nothing has been charged or changed yet, and nobody would hear of it.
  expectConnected(reply);
  return parsed;
}

/** Aborts `waiting` after `ms`, so that work that has not started by then fails with a 503. */
async function atMost<Result>(ms: number, waiting: AbortController, work: Promise<Result>): Promise<Result> {
  const timer = setTimeout(() => waiting.abort(tooBusy()), ms);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}
