import { createWriteStream } from 'node:fs';
import { realpath, rename, rm, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { UsageError } from './core.ts';

/**
 * Writes the file that the option `--out` names, or replaces it. It is written under a temporary name first, so that a
 * failure leaves no partial file under `path`. A device or named pipe is written to directly: renaming a file to its path
 * would replace it, even `/dev/null`. Of a symbolic link, the file that it leads to is replaced.
 */
export async function writeOutFile(path: string, content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>) {
  try {
    if (await isReplaceable(path)) await replaceFile(await realpath(path).catch(() => path), content);
    else await pipeline(content, createWriteStream(path));
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    const sentence = `--out: ${path} can't be written (${code}).`;
    if (syscall === 'open' || syscall === 'rename') throw new UsageError(sentence, { cause: error });
    if (syscall === 'write') throw new OperatorError(sentence, { cause: error });
    throw error;
  }
}

/** Whether a path is free or leads to a regular file. */
async function isReplaceable(path: string): Promise<boolean> {
  const existing = await stat(path).catch(() => undefined);
  return existing === undefined || existing.isFile();
}

async function replaceFile(path: string, content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<void> {
  const part = `${path}.part`;
  try {
    await pipeline(content, createWriteStream(part));
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}
