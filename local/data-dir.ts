import { join } from 'node:path';
import { createFolder } from '../common/runtime/create-folder.ts';
import { lockFile } from '../common/runtime/file-lock.ts';
import { OperatorError } from '../common/runtime/operator-error.ts';

/** Creates the folder and locks it until the lock is disposed of or the process ends, however it ends. */
export function lockDataDir(folder: string): Disposable {
  let lock: Disposable | undefined;
  try {
    // Postgres may run as another user, who has to traverse this folder; secrets in it have their own permissions.
    createFolder(folder, 0o711);
    createFolder(join(folder, 'logs'), 0o700);
    lock = lockFile(join(folder, 'lock'));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new OperatorError(`DATA_DIR (${folder}) can't be written to: ${code}.`, { cause: error });
  }
  if (!lock) throw new OperatorError(`Another Signpost is already using DATA_DIR (${folder}).`);
  return lock;
}
