import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { lockFile } from '../../common/runtime/file-lock.ts';

/**
 * Workers and the carrier end when the main process is gone, unless they are suspended or busy. Such a process still
 * holds the port, and perhaps the writer lock of the route table, and it would answer scans again if it resumed. So
 * each of them locks a file named after its process id, and the next start of the gateway kills processes that still
 * hold such a lock.
 */
const FOLDER = 'processes';
const LOCK = /^(\d+)\.lock$/;

/** How long a killed process may take to exit, and how often that is checked, in ms. */
const EXIT_MS = 5_000;
const CHECK_MS = 10;

/** Locks this process's file until the lock is disposed of or garbage-collected, or the process exits. */
export function lockProcess(dataDir: string, logger: Logger): Disposable | undefined {
  try {
    mkdirSync(join(dataDir, FOLDER), { recursive: true, mode: 0o700 });
    const lock = lockFile(processLock(dataDir, process.pid));
    if (!lock) logger.error('another process has locked the lock file of this process');
    return lock;
  } catch (error) {
    // A disk that can't be written must not stop redirects.
    logger.error({ err: error }, 'the lock file of this process can’t be locked');
    return undefined;
  }
}

/** The lock file of a process; it can be removed once the process has exited. */
export function processLock(dataDir: string, pid: number): string {
  return join(dataDir, FOLDER, `${pid}.lock`);
}

/** Kills leftover processes of a previous gateway; returns false if one of them may still be running. */
export async function killOrphanedProcesses(dataDir: string, logger: Logger): Promise<boolean> {
  try {
    const pids = readdirSync(join(dataDir, FOLDER)).flatMap((name) => Number(LOCK.exec(name)?.[1] ?? []));
    const ended = await Promise.all(pids.map((pid) => endProcess(dataDir, pid, logger)));
    return ended.every(Boolean);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true;
    logger.error({ err: error }, 'leftover processes of a previous gateway can’t be listed');
    return false;
  }
}

async function endProcess(dataDir: string, pid: number, logger: Logger): Promise<boolean> {
  const path = processLock(dataDir, pid);
  if (!isLocked(path)) {
    rmSync(path);
    return true;
  }
  logger.warn({ pid }, 'a process of a previous gateway is still running and is killed');
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has exited meanwhile, or can't be killed, for example in another PID namespace: the lock will tell.
  }
  for (const end = performance.now() + EXIT_MS; isLocked(path); await sleep(CHECK_MS)) {
    if (performance.now() < end) continue;
    logger.error({ pid }, 'a process of a previous gateway can’t be killed');
    return false;
  }
  rmSync(path);
  return true;
}

function isLocked(path: string): boolean {
  const lock = lockFile(path);
  lock?.[Symbol.dispose]();
  return lock === undefined;
}
