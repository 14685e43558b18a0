import { readFile } from 'node:fs/promises';
import { UsageError } from './core.ts';

/** Reads the text file that an option names, such as `--policy`. Throws a `UsageError` that names both if it can't. */
export async function readOptionFile(option: string, path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UsageError(`${option}: ${path} can't be read (${code}).`, { cause: error });
  }
}
