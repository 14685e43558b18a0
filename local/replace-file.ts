import { open, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { OperatorError } from '../common/runtime/operator-error.ts';

/**
 * Writes or replaces a file atomically: after a crash or a power cut it has its old content or all of the new one.
 * Rejects with an `OperatorError` if it can't be written, for example to a full disk.
 */
export async function replaceFile(path: string, text: string, mode = 0o644): Promise<void> {
  const draft = `${path}.new`;
  try {
    // Without the flush a power cut within half a minute can leave the new name with nothing in it.
    await writeFile(draft, text, { mode, flush: true });
    await rename(draft, path);
    await using folder = await open(dirname(path));
    await folder.sync();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new OperatorError(`${path} can't be written: ${code}.`, { cause: error });
  }
}
