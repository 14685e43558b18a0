import { readFileSync } from 'node:fs';
import { childrenOf } from './process-tree.ts';

/** What the kernel counts CPU in, in µs: 100 ticks a second wherever Node runs. */
const TICK_US = 10_000;

/** CPU time, user and system, that a process and all below it have used so far, in µs; NaN where there is no /proc. */
export function cpuOf(pid: number): number {
  try {
    // utime, stime, and the same of children that have ended; the name before them may hold anything but a last `)`.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\)/s, '').split(' ').slice(12, 16);
    const own = fields.reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_US;
    return childrenOf(pid).reduce((sum, child) => sum + cpuOf(child), own);
  } catch {
    return Number.NaN;
  }
}
