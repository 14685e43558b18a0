import { execFile } from 'node:child_process';
import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** What a machine of Signpost's keeps its data on. */
export interface Disk {
  /** A folder on it. */
  readonly path: string;
  close(): Promise<void>;
}

/** Room for some hundred thousand scans and their routes. */
const SIZE = '256m';

/** A disk that is small enough to be filled; undefined where this process may not mount one (it has to be root). */
export async function openSmallDisk(path: string): Promise<Disk | undefined> {
  await mkdir(path, { recursive: true });
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${SIZE}`, 'signpost-torture', path]);
  } catch {
    return undefined;
  }
  return { path, close: async () => void (await run('umount', ['--lazy', path])) };
}

/** Takes all the room that there is, until the function that it gives is called. */
export async function fill({ path }: Disk): Promise<() => Promise<void>> {
  const filler = join(path, 'filler');
  const file = await open(filler, 'w');
  for (const size of [1 << 20, 4_096, 1]) {
    try {
      for (;;) {
        const { bytesWritten } = await file.write(Buffer.alloc(size));
        if (bytesWritten < size) break;
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }
  await file.close();
  return () => rm(filler, { force: true });
}
