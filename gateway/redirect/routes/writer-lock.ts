import { join } from 'node:path';
import { setImmediate as nextIteration, setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { type FileLock, openFileLock } from '../../../common/runtime/file-lock.ts';

/**
 * Lets one process at a time write to the route table, and those first that apply a change before its response is sent.
 *
 * LMDB's own lock makes a writer wait with its whole event loop: a process that is suspended in the middle of a
 * transaction, for up to 15 s until it is killed, then kept every worker with a route to write from answering scans.
 */
export interface WriterLock {
  /** Runs a transaction once no other process is in one. `isUrgent`: before those that are not. */
  alone(write: () => void, isUrgent: boolean): Promise<void>;
  close(): void;
}

/** How often a writer tries to take a lock that another process holds, in ms. */
const RETRY_MS = 1;

/** The longest that a writer lets urgent ones go first, in ms: one of them may be suspended. */
const PATIENCE_MS = 100;

const NO_LOCK: Disposable = { [Symbol.dispose]: () => undefined };

export function openWriterLock(folder: string, logger: Logger): WriterLock {
  const writer = openLock(join(folder, 'writer.lock'), logger);
  /** Held by one of the processes that wait to run an urgent transaction. */
  const urgent = openLock(join(folder, 'urgent.lock'), logger);

  /** Waits while urgent transactions do. */
  async function giveWay(): Promise<void> {
    const end = performance.now() + PATIENCE_MS;
    await nextIteration();
    while (!isFree(urgent) && performance.now() < end) await sleep(RETRY_MS);
  }

  return {
    async alone(write, isUrgent) {
      let announced: Disposable | undefined;
      try {
        for (;;) {
          if (!isUrgent) await giveWay();
          using taken = take(writer);
          if (taken) return write();
          if (isUrgent) announced ??= take(urgent);
          await sleep(RETRY_MS);
        }
      } finally {
        announced?.[Symbol.dispose]();
      }
    },
    close() {
      writer?.close();
      urgent?.close();
    },
  };
}

function openLock(path: string, logger: Logger): FileLock | undefined {
  try {
    return openFileLock(path);
  } catch (error) {
    // A disk that can't be written must not stop redirects.
    logger.error(
      { err: error },
      'the lock of the route table can’t be opened: its writers wait for each other in LMDB',
    );
    return undefined;
  }
}

/** Without a usable lock file writers wait for each other in LMDB. */
function take(lock: FileLock | undefined): Disposable | undefined {
  try {
    return lock ? lock.take() : NO_LOCK;
  } catch {
    return NO_LOCK;
  }
}

function isFree(lock: FileLock | undefined): boolean {
  using taken = take(lock);
  return taken !== undefined;
}
