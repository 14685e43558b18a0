import type { Writable } from 'node:stream';

/** How much of their responses a process keeps for clients that do not read them, in bytes. */
const MAX_BYTES = 128 * 1024 * 1024;

/** The time between two checks while a response is being sent, in ms. */
const CHECK_MS = 500;

interface WatchedResponse {
  /** Closes the connection, or the stream. */
  close(): void;
  /** What was still unread at the last check, in bytes, and how many checks in a row found anything. */
  unread: number;
  checks: number;
}

/** Watches a response until it is closed, or the returned function is called. `close`: closes its connection. */
export type WatchResponse = (sent: Pick<Writable, 'writableLength' | 'once' | 'off'>, close: () => void) => () => void;

/**
 * Limits the memory of responses that clients do not read. Above `maxBytes` in all, it closes the connections whose
 * responses have been unread longest; above twice that, also those that only the last check found unread.
 */
export function limitUnreadResponses({ maxBytes = MAX_BYTES, checkMs = CHECK_MS } = {}): WatchResponse {
  const responses = new Map<Pick<Writable, 'writableLength'>, WatchedResponse>();
  let checking: NodeJS.Timeout | undefined;

  function check(): void {
    let total = 0;
    for (const [{ writableLength }, response] of responses) {
      response.unread = writableLength;
      response.checks = writableLength > 0 ? response.checks + 1 : 0;
      total += writableLength;
    }
    if (total > maxBytes) closeOldest(total);
    if (responses.size > 0) return;
    clearInterval(checking);
    checking = undefined;
  }

  function closeOldest(total: number): void {
    let left = total;
    for (const response of [...responses.values()].sort((one, other) => other.checks - one.checks)) {
      if (left <= (response.checks > 1 ? maxBytes : 2 * maxBytes)) return;
      left -= response.unread;
      response.close();
    }
  }

  return (sent, close) => {
    responses.set(sent, { close, unread: 0, checks: 0 });
    const unwatch = () => {
      responses.delete(sent);
      sent.off('close', unwatch);
    };
    sent.once('close', unwatch);
    checking ??= setInterval(check, checkMs).unref();
    return unwatch;
  };
}

/** For all servers of this process. */
export const watchResponse = limitUnreadResponses();
