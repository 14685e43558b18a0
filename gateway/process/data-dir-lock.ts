import { join } from 'node:path';
import type { Logger } from 'pino';
import { lockFile } from '../../common/runtime/file-lock.ts';
import { OperatorError } from '../../common/runtime/operator-error.ts';

/** Locks DATA_DIR for this gateway: two gateways would read and remove each other's spools. */
export function lockDataDir(folder: string, logger: Logger): Disposable {
  let lock: Disposable | undefined;
  try {
    lock = lockFile(join(folder, 'lock'));
  } catch (error) {
    // A disk that can't be written must not stop redirects.
    logger.error({ err: error }, 'DATA_DIR can’t be locked: another gateway that uses it would go unnoticed');
    return { [Symbol.dispose]: () => undefined };
  }
  if (!lock) throw new OperatorError(`Another gateway is using DATA_DIR ${folder}: each needs a folder of its own.`);
  return lock;
}
