import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Logger } from 'pino';
import { OperatorError } from '../../common/runtime/operator-error.ts';

/** What SQLite calls a file that somebody else has locked. */
const BUSY = 5;

/**
 * Locks a file, which is made if it is missing, until the lock is disposed of or this process ends, however it ends;
 * undefined when another process has locked it. Node itself locks no files and SQLite does, with a lock of the system's
 * that goes with its process and needs no room on the disk.
 */
export function lockFile(path: string): Disposable | undefined {
  const lock = new DatabaseSync(path, { timeout: 0 });
  try {
    lock.exec('pragma journal_mode = memory; begin exclusive');
  } catch (error) {
    lock.close();
    if ((error as { errcode?: number }).errcode === BUSY) return undefined;
    throw error;
  }
  return { [Symbol.dispose]: () => lock.close() };
}

/** Claims DATA_DIR for this process: two gateways would read and remove each other's spools. */
export function claimFolder(folder: string, logger: Logger): Disposable {
  let lock: Disposable | undefined;
  try {
    lock = lockFile(join(folder, 'lock'));
  } catch (error) {
    // A disk that takes nothing stops no redirects.
    logger.error({ err: error }, 'DATA_DIR can’t be locked: another gateway that uses it would go unnoticed');
    return { [Symbol.dispose]: () => undefined };
  }
  if (!lock) throw new OperatorError(`Another gateway is using DATA_DIR ${folder}: each needs a folder of its own.`);
  return lock;
}
