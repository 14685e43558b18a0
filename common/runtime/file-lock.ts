import { DatabaseSync } from 'node:sqlite';

/** SQLite's error code for a file that another process has locked. */
const SQLITE_BUSY = 5;

/**
 * Locks a file, which is created if it is missing, until the lock is disposed of or this process ends, however it ends;
 * undefined if another process holds the lock. Node has no file locks but SQLite does: it uses a lock of the operating
 * system, which is released with its process and needs no disk space.
 */
export function lockFile(path: string): Disposable | undefined {
  const lock = new DatabaseSync(path, { timeout: 0 });
  try {
    lock.exec('pragma journal_mode = memory; begin exclusive');
  } catch (error) {
    lock.close();
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return undefined;
    throw error;
  }
  return { [Symbol.dispose]: () => lock.close() };
}

/** A lock that a process takes for moments, again and again. */
export interface FileLock {
  /** Undefined while the lock is held; it is released when the result is disposed of or its process ends. */
  take(): Disposable | undefined;
  close(): void;
}

/** Opens the lock of a file, like that of `lockFile`, once for all the times it is taken. */
export function openFileLock(path: string): FileLock {
  const lock = new DatabaseSync(path, { timeout: 0 });
  const [begin, end] = [lock.prepare('begin exclusive'), lock.prepare('rollback')];
  let hasJournal = true;
  return {
    take() {
      if (lock.isTransaction) return undefined;
      try {
        // Otherwise each turn creates and deletes a journal file: 44 instead of 9 µs. Fails while the lock is held.
        if (hasJournal) lock.exec('pragma journal_mode = memory');
        hasJournal = false;
        begin.run();
      } catch (error) {
        if ((error as { errcode?: number }).errcode === SQLITE_BUSY) return undefined;
        throw error;
      }
      return { [Symbol.dispose]: () => void end.run() };
    },
    close: () => lock.close(),
  };
}
