import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../replace-file.ts';

/** Remembers, in `DATA_DIR/sample`, that the local account is to get sample data, until it is complete. */
export function requestSample(dataDir: string): Promise<void> {
  return replaceFile(pathIn(dataDir), `${Date.now()}\n`);
}

/**
 * When the sample data was requested, in ms since 1970; undefined if it was not, or is complete. Its scans end at this
 * time, so that they are the same after an interruption.
 */
export async function sampleRequestedAt(dataDir: string): Promise<number | undefined> {
  try {
    return Number(await readFile(pathIn(dataDir), 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** Forgets the request, if there is one. */
export function forgetSample(dataDir: string): Promise<void> {
  return rm(pathIn(dataDir), { force: true });
}

function pathIn(dataDir: string): string {
  return join(dataDir, 'sample');
}
