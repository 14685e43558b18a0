import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { UsageError } from './core.ts';

/**
 * Writes the file that the option `--out` names, or replaces it. It is written under a temporary name first, so that a
 * failure leaves no partial file under `path`.
 */
export async function writeOutFile(path: string, content: Iterable<Uint8Array> | AsyncIterable<Uint8Array>) {
  const part = `${path}.part`;
  try {
    await pipeline(content, createWriteStream(part));
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true });
    const { code, syscall } = error as NodeJS.ErrnoException;
    const sentence = `--out: ${path} can't be written (${code}).`;
    if (syscall === 'open' || syscall === 'rename') throw new UsageError(sentence, { cause: error });
    if (syscall === 'write') throw new OperatorError(sentence, { cause: error });
    throw error;
  }
}
