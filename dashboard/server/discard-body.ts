import type { FastifyReply, FastifyRequest } from 'fastify';

/** The most bytes of an unwanted body that are read. */
const MAX_DISCARDED_BYTES = 64 * 1024;

/**
 * Call before answering a request whose body is not wanted. A small one is read and dropped: if the connection were
 * closed on it, the client could miss the answer (one of Node's got EPIPE instead). Beyond that the connection is
 * closed.
 */
export function discardBody({ raw }: FastifyRequest, reply: FastifyReply): void {
  if (Number(raw.headers['content-length'] ?? 0) > MAX_DISCARDED_BYTES) {
    reply.header('connection', 'close');
    return;
  }
  let read = 0;
  raw.on('data', (chunk: Buffer) => {
    read += chunk.length;
    if (read > MAX_DISCARDED_BYTES) raw.destroy();
  });
  raw.resume();
}
