import { Code, ConnectError } from '@connectrpc/connect';
import type { FastifyReply } from 'fastify';

/** The abort reason; one shared instance, because creating an error captures its stack. */
const DISCONNECTED = new ConnectError('The caller disconnected.', Code.Canceled);

/**
 * Returns a controller that aborts when the caller disconnects before the response; it may be aborted for other
 * reasons.
 */
export function abortOnDisconnect(reply: FastifyReply): AbortController {
  const controller = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) controller.abort(DISCONNECTED);
  });
  return controller;
}

/** Throws if the caller has disconnected. */
export function expectConnected(reply: FastifyReply): void {
  if (reply.raw.destroyed) throw DISCONNECTED;
}
