import { readFileSync } from 'node:fs';

/** The running children of a process; none without /proc. */
export function childrenOf(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1');
    return children.split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** A figure of /proc/…/status in MiB, such as `VmHWM`, the peak resident memory; NaN if there is none. */
export function memoryOf(pid: number, figure: 'VmHWM' | 'RssAnon' | 'RssShmem'): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    return Number(new RegExp(`^${figure}:\\s+(\\d+)`, 'm').exec(status)?.[1]) / 1_024;
  } catch {
    return Number.NaN;
  }
}

/** A figure of /proc/…/smaps_rollup in MiB; `Pss` contains a process's share of shared pages. NaN if there is none. */
export function rolledUp(pid: number, figure: 'Rss' | 'Pss'): number {
  try {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1');
    return Number(new RegExp(`^${figure}:\\s+(\\d+)`, 'm').exec(rollup)?.[1]) / 1_024;
  } catch {
    return Number.NaN;
  }
}
