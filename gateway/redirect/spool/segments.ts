import { readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';

/** A file of a spool: frames one after the other. */
export interface Segment {
  /** Tells it from all others of its folder, also from those that are gone; later ones sort after earlier ones. */
  readonly name: string;
  readonly path: string;
  /** Whether nothing is written to it any more. */
  readonly sealed: boolean;
}

const OPEN = '.open';
const SEALED = '.scans';

/** The segments of a spool, oldest first; none when there is no such folder. */
export function segmentsIn(folder: string): Segment[] {
  let all: string[];
  try {
    all = readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  const names = all.filter((name) => name.endsWith(OPEN) || name.endsWith(SEALED)).sort();
  return names.map((name, index) => ({
    name: name.slice(0, name.lastIndexOf('.')),
    path: join(folder, name),
    // Only the last one is written to: an older one that is open could not be renamed, and must hold up none behind it.
    sealed: name.endsWith(SEALED) || index < names.length - 1,
  }));
}

/** Where a segment is written that begins now. `last`: the name of the one before it. */
export function newSegment(folder: string, last: string): Segment {
  // A clock that was put back must not put a segment before an older one.
  const now = String(Math.max(Date.now(), Number.parseInt(last || '0', 10) + 1)).padStart(15, '0');
  return { name: now, path: join(folder, now + OPEN), sealed: false };
}

/** Says that nothing is written to a segment any more, so that it can be removed once it is read. */
export function sealSegment(folder: string, name: string): void {
  renameSync(join(folder, name + OPEN), join(folder, name + SEALED));
}

/** The same for what a process has left that is gone. */
export function sealWhatIsLeft(folder: string): void {
  for (const { name, path } of segmentsIn(folder)) if (path.endsWith(OPEN)) sealSegment(folder, name);
}

/** The spools in a folder: one for each worker, also for those that there are no more; and the folder itself. */
export function spoolsIn(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    return ['.', ...entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)];
  } catch {
    // It comes with the first worker.
    return ['.'];
  }
}
