import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';

/**
 * A process of this priority gets a tenth of the CPU time of another one while both want all of it. Source: sched(7).
 */
const NICE = 10;

/**
 * The kernel lets the users of a machine change one group in 100 ms. How often that is tried, and the time between two
 * attempts, in ms.
 */
const MAX_ATTEMPTS = 20;
const RETRY_MS = 150;

/**
 * Lets the processes that somebody waits for run before this one while CPU time is scarce. On Linux each thread has a
 * priority, and processes may be grouped by session (sched(7), "The autogroup feature"): a group then competes with
 * others by its own priority, which is changed only if this process leads its session, and so shares it with its
 * children at most.
 */
export function runInBackground(): void {
  const isLinux = process.platform === 'linux';
  for (const id of isLinux ? readdirSync('/proc/self/task').map(Number) : [process.pid]) {
    try {
      setPriority(id, Math.max(NICE, getPriority(id)));
    } catch {
      // The thread has ended.
    }
  }
  if (isLinux) lowerGroup(MAX_ATTEMPTS);
}

/** The same for this worker thread alone, which is possible on Linux only. */
export function runThreadInBackground(): void {
  if (process.platform === 'linux') setPriority(Math.max(NICE, getPriority()));
}

function lowerGroup(attempts: number): void {
  try {
    if (isSessionLeader()) writeFileSync('/proc/self/autogroup', String(NICE));
  } catch (error) {
    // Any other error says that the kernel has no such groups.
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || attempts === 1) return;
    setTimeout(() => lowerGroup(attempts - 1), RETRY_MS).unref();
  }
}

function isSessionLeader(): boolean {
  // After the name, which may contain anything: state, parent, process group, session.
  const [, session] = /^.*\) \S (?:-?\d+ ){2}(\d+)/s.exec(readFileSync('/proc/self/stat', 'latin1')) ?? [];
  return Number(session) === process.pid;
}
