import { readFileSync } from 'node:fs';
import { childrenOf } from './process-tree.ts';

/** The kernel's unit of CPU time, in µs: 100 ticks a second on all platforms of Node. */
const TICK_US = 10_000;

/** User and system CPU time of a process and all its descendants so far, in µs; NaN without /proc. */
export function cpuOf(pid: number): number {
  try {
    // utime, stime, and those of exited children; the name before them ends with the last `)` and may contain others.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\)/s, '').split(' ').slice(12, 16);
    const own = fields.reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_US;
    // A child that has exited meanwhile has none of its own: it is among those of its parent, at the next call.
    return childrenOf(pid).reduce((sum, child) => sum + (cpuOf(child) || 0), own);
  } catch {
    return Number.NaN;
  }
}
