import { Code, ConnectError } from '@connectrpc/connect';
import type { FastifyReply } from 'fastify';

/** Why work is aborted whose caller left; one for all, because making an error takes its stack down. */
const LEFT = new ConnectError('The caller left.', Code.Canceled);

/** Aborts once nobody waits for the answer any more; work may also be aborted by it for a reason of its own. */
export function whileWaitedFor(reply: FastifyReply): AbortController {
  const left = new AbortController();
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) left.abort(LEFT);
  });
  return left;
}

/** Throws when the caller has left. */
export function expectCaller(reply: FastifyReply): void {
  if (reply.raw.destroyed) throw LEFT;
}
