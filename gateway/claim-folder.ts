import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Logger } from 'pino';
import { Sentence } from './keep-process.ts';

/** What SQLite calls a file that somebody else has locked. */
const BUSY = 5;

/**
 * Claims DATA_DIR for this process until it is disposed of or the process ends, however it ends: two gateways would read
 * and remove each other's spools. Node itself locks no files and SQLite does, with a lock of the system's that goes with
 * its process and needs no room on the disk.
 */
export function claimFolder(folder: string, logger: Logger): Disposable {
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(join(folder, 'lock'), { timeout: 0 });
    lock.exec('pragma journal_mode = memory; begin exclusive');
  } catch (error) {
    if ((error as { errcode?: number }).errcode === BUSY) {
      throw new Sentence(`Another gateway is using DATA_DIR ${folder}: each needs a folder of its own.`);
    }
    // A disk that takes nothing stops no redirects.
    logger.error({ err: error }, 'DATA_DIR can’t be locked: another gateway that uses it would go unnoticed');
  }
  return { [Symbol.dispose]: () => lock?.close() };
}
