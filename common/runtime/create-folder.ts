import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Creates a folder and those above it that are missing, with permissions `mode`; throws Node's error if that fails.
 * `mkdirSync` with `recursive` never returns where a file system answers ENOENT although the folder above exists:
 * `/proc`.
 */
export function createFolder(folder: string, mode?: number): void {
  if (isFolder(folder)) return;
  const above = dirname(folder);
  if (above !== folder) createFolder(above, mode);
  try {
    mkdirSync(folder, { mode });
  } catch (error) {
    // Another process may have created it meanwhile.
    if (!isFolder(folder)) throw error;
  }
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}
