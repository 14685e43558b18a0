import { execFile } from 'node:child_process';
import { mkdir, open, readdir, readFile, readlink, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The disk of a simulated machine. */
export interface Disk {
  /** A folder on it. */
  readonly path: string;
  close(): Promise<void>;
}

/** In MiB, for some hundred thousand scans and their routes. */
export const SMALL_DISK_MIB = 256;

/** How often killed processes are checked until they are gone, in ms. */
const CHECK_MS = 20;

/** A disk that is small enough to be filled; undefined if this process may not mount one, which requires root. */
export async function openSmallDisk(path: string): Promise<Disk | undefined> {
  await mkdir(path, { recursive: true });
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${SMALL_DISK_MIB}m`, 'signpost-torture', path]);
  } catch {
    return undefined;
  }
  return { path, close: async () => void (await run('umount', ['--lazy', path])) };
}

/** Fills the disk until the returned function is called. */
export async function fill({ path }: Disk): Promise<() => Promise<void>> {
  const filler = join(path, 'filler');
  const { bfree, bsize } = await statfs(path);
  // Without writing it; the file system needs some of it for itself, and leaves less than that.
  await run('fallocate', ['--length', String(bfree * bsize), filler]).catch(() => undefined);
  await using file = await open(filler, 'a');
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
  return () => rm(filler, { force: true });
}

/**
 * Sends SIGKILL to the processes of a machine, except this process, and resolves when all of them are gone: those whose
 * working directory is on its disk, or that have a folder on it in their environment.
 */
export async function killUsers({ path }: Disk): Promise<void> {
  for (;;) {
    const users = await usersOf(path);
    if (users.length === 0) return;
    for (const pid of users) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // The process has ended meanwhile.
      }
    }
    await sleep(CHECK_MS);
  }
}

async function usersOf(path: string): Promise<number[]> {
  const pids = (await readdir('/proc')).map(Number).filter((pid) => pid > 0 && pid !== process.pid);
  const found = await Promise.all(
    pids.map(async (pid) => {
      // Both are unreadable once the process has ended, and empty for a zombie.
      const folder = await readlink(`/proc/${pid}/cwd`).catch(() => '');
      const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
      return folder.startsWith(`${path}/`) || environment.includes(`=${path}/`) ? pid : undefined;
    }),
  );
  return found.filter((pid) => pid !== undefined);
}
