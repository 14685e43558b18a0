import type { FastifyReply } from 'fastify';

/** Aborts once nobody waits for the answer any more, because the connection is closed. */
export function whileOpen({ raw }: FastifyReply): AbortSignal {
  const closed = new AbortController();
  if (raw.destroyed) closed.abort();
  else raw.once('close', () => closed.abort());
  return closed.signal;
}
