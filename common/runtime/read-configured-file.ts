import { readFileSync } from 'node:fs';
import { OperatorError } from './operator-error.ts';

/** Reads the file that a variable names. Throws an `OperatorError` that names both if it can't be read. */
export function readConfiguredFile(variable: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new OperatorError(`${variable} ${path} can't be read (${(error as NodeJS.ErrnoException).code}).`, {
      cause: error,
    });
  }
}
