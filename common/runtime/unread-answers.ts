import type { Writable } from 'node:stream';

/** How much of their answers a process keeps for clients that do not read them, in bytes. */
const MAX_BYTES = 128 * 1024 * 1024;

/** The time between two checks while something is being answered, in ms. */
const CHECK_MS = 500;

interface Answer {
  /** Closes the connection, or the stream. */
  close(): void;
  /** What was still unread at the last check, in bytes, and how many checks in a row found anything. */
  unread: number;
  checks: number;
}

/** Watches an answer until it is closed, or the returned function is called. `close`: closes its connection. */
export type WatchAnswer = (sent: Pick<Writable, 'writableLength' | 'once' | 'off'>, close: () => void) => () => void;

/**
 * Limits the memory of answers that clients do not read. Beyond `maxBytes`, those are closed that have been unread for longest,
 * but not what is younger than the time between two checks, unless there is more than twice as much.
 */
export function limitUnreadAnswers({ maxBytes = MAX_BYTES, checkMs = CHECK_MS } = {}): WatchAnswer {
  const answers = new Map<Pick<Writable, 'writableLength'>, Answer>();
  let checking: NodeJS.Timeout | undefined;

  function check(): void {
    let total = 0;
    for (const [{ writableLength }, answer] of answers) {
      answer.unread = writableLength;
      answer.checks = writableLength > 0 ? answer.checks + 1 : 0;
      total += writableLength;
    }
    if (total > maxBytes) closeOldest(total);
    if (answers.size > 0) return;
    clearInterval(checking);
    checking = undefined;
  }

  function closeOldest(total: number): void {
    let left = total;
    for (const answer of [...answers.values()].sort((one, other) => other.checks - one.checks)) {
      if (left <= (answer.checks > 1 ? maxBytes : 2 * maxBytes)) return;
      left -= answer.unread;
      answer.close();
    }
  }

  return (sent, close) => {
    answers.set(sent, { close, unread: 0, checks: 0 });
    const unwatch = () => {
      answers.delete(sent);
      sent.off('close', unwatch);
    };
    sent.once('close', unwatch);
    checking ??= setInterval(check, checkMs).unref();
    return unwatch;
  };
}

/** For all servers of this process. */
export const watchAnswer = limitUnreadAnswers();
