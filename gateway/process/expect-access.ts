import { accessSync, constants } from 'node:fs';
import { createFolder } from '../../common/runtime/create-folder.ts';
import { OperatorError } from '../../common/runtime/operator-error.ts';

/** Creates `DATA_DIR` if it is missing. Throws an `OperatorError` if it can't be written to. */
export function expectWritable(folder: string): void {
  try {
    createFolder(folder);
    accessSync(folder, constants.W_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const problem = code === 'EEXIST' || code === 'ENOTDIR' ? 'is not a folder' : "can't be written to";
    throw new OperatorError(`DATA_DIR ${folder} ${problem} (${code}).`);
  }
}

/** Throws an `OperatorError` if `COUNTRY_DATABASE` can't be read. */
export function expectReadable(database: string): void {
  try {
    accessSync(database, constants.R_OK);
  } catch (error) {
    throw new OperatorError(`COUNTRY_DATABASE ${database} can't be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}
