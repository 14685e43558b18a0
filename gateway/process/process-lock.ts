import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { lockFile } from './claim-folder.ts';

/**
 * Workers and the carrier end when the first process is gone, unless they are stopped or busy. Such a process still holds
 * the port, and perhaps the lock that writers of the route table need, and it would go on answering scans if it resumed.
 * So each of them locks a file that is named after its process id, and whoever starts the gateway next kills those that
 * still hold such a lock.
 */
const FOLDER = 'processes';
const LOCK = /^(\d+)\.lock$/;

/** How long a killed process may take to be gone, in ms, and how often that is checked. */
const GONE_MS = 5_000;
const CHECK_MS = 10;

/** Locks this process's file until the lock is disposed of, or garbage, or the process is gone. */
export function lockProcess(dataDir: string, logger: Logger): Disposable | undefined {
  try {
    mkdirSync(join(dataDir, FOLDER), { recursive: true, mode: 0o700 });
    const lock = lockFile(processLock(dataDir, process.pid));
    if (!lock) logger.error('another process has locked the file of this one');
    return lock;
  } catch (error) {
    // A disk that takes nothing stops no redirects.
    logger.error({ err: error }, 'the file of this process can’t be locked');
    return undefined;
  }
}

/** The file that a process locks; it can be removed once the process is gone. */
export function processLock(dataDir: string, pid: number): string {
  return join(dataDir, FOLDER, `${pid}.lock`);
}

/** Kills the processes that a former gateway left; false when one of them may still be there. */
export async function endLeftProcesses(dataDir: string, logger: Logger): Promise<boolean> {
  try {
    const pids = readdirSync(join(dataDir, FOLDER)).flatMap((name) => Number(LOCK.exec(name)?.[1] ?? []));
    const ended = await Promise.all(pids.map((pid) => endProcess(dataDir, pid, logger)));
    return ended.every(Boolean);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true;
    logger.error({ err: error }, 'processes of a former gateway can’t be looked for');
    return false;
  }
}

async function endProcess(dataDir: string, pid: number, logger: Logger): Promise<boolean> {
  const path = processLock(dataDir, pid);
  if (!isLocked(path)) {
    rmSync(path);
    return true;
  }
  logger.warn({ pid }, 'a process of a former gateway is still there and is killed');
  process.kill(pid, 'SIGKILL');
  for (const end = performance.now() + GONE_MS; isLocked(path); await sleep(CHECK_MS)) {
    if (performance.now() < end) continue;
    logger.error({ pid }, 'a process of a former gateway can’t be killed');
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
