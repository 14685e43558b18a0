import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/** Such a process gets a tenth of the CPU time of another one while both want more than there is. Source: sched(7). */
const NICE = 10;

/**
 * Lets the processes that somebody waits for run before this one while CPU time is scarce. On Linux each thread has a
 * priority, and processes may be grouped by session (sched(7), "The autogroup feature"): a group then competes with others
 * by its own priority, which is changed only if the session has no programs but this one.
 */
export function runInBackground(): void {
  if (process.platform !== 'linux') {
    setPriority(NICE);
    return;
  }
  for (const thread of readdirSync('/proc/self/task')) attempt(() => setPriority(Number(thread), NICE));
  if (isSessionLeader()) attempt(() => writeFileSync('/proc/self/autogroup', String(NICE)));
}

function isSessionLeader(): boolean {
  // After the name, which may contain anything: state, parent, process group, session.
  const [, session] = /^.*\) \S (?:-?\d+ ){2}(\d+)/s.exec(readFileSync('/proc/self/stat', 'latin1')) ?? [];
  return Number(session) === process.pid;
}

/** A priority is no reason to fail: the thread may have ended, and the kernel may have no such groups. */
function attempt(change: () => void): void {
  try {
    change();
  } catch {}
}
