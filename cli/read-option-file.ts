import { readFile } from 'node:fs/promises';
import { UsageError } from './core.ts';

/**
 * Reads the text file that an option names, such as `--policy`: UTF-8, with or without a byte order mark. Throws a
 * `UsageError` that names both if it can't: decoded as UTF-8, other encodings would put U+FFFD into targets.
 */
export async function readOptionFile(option: string, path: string): Promise<string> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`${option}: ${path} can't be read (${error.code}).`, { cause: error });
  });
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (error) {
    throw new UsageError(`${option}: ${path} is not in UTF-8; save it in that encoding.`, { cause: error });
  }
}
