import type { IncomingMessage, ServerResponse } from 'node:http';

/** Limits for reading and discarding unwanted bodies: bytes and time in ms of each, and the number at a time. */
export const DISCARDED_BYTES = 32 * 1024 * 1024;
export const DISCARDED_MS = 5_000;
const MAX_DISCARDED = 4;

/** How often they are checked, in ms. Most bodies arrive right behind their heads, before the first check. */
const CHECK_MS = 100;

/** The number of bodies that this process is discarding. */
let discarded = 0;

/** Begins to discard a body, until it is disposed of; undefined if there are too many. */
export function beginDiscarding(): Disposable | undefined {
  if (discarded >= MAX_DISCARDED) return undefined;
  discarded++;
  return { [Symbol.dispose]: () => void discarded-- };
}

/**
 * Limits what Node reads and discards of a body whose request was answered before it arrived; then closes the
 * connection.
 */
export function limitUnwantedBody(request: IncomingMessage, response: ServerResponse): void {
  const { headers, socket } = request;
  if (!('transfer-encoding' in headers) && Number(headers['content-length'] ?? 0) === 0) return;
  response.once('finish', () => {
    if (request.complete) return;
    const [start, before] = [performance.now(), socket.bytesRead];
    let discarding: Disposable | undefined;
    const checking = setInterval(() => {
      if (!request.complete && !socket.destroyed) {
        discarding ??= beginDiscarding();
        const isWithin = performance.now() - start < DISCARDED_MS && socket.bytesRead - before < DISCARDED_BYTES;
        if (discarding && isWithin) return;
        socket.destroy();
      }
      clearInterval(checking);
      discarding?.[Symbol.dispose]();
    }, CHECK_MS);
  });
}
