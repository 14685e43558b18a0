import { readdirSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** A file of a spool: a sequence of frames. */
export interface Segment {
  /** Unique within its folder, also among removed segments; later ones sort after earlier ones. */
  readonly name: string;
  readonly path: string;
  /** Whether writing to it has ended. */
  readonly sealed: boolean;
}

/** The folder in `DATA_DIR` for spools. */
export const SPOOLS = 'spool';

const OPEN = '.open';
const SEALED = '.scans';

/** The segments of a spool, oldest first; empty if there is no such folder. */
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
    // Only the last one is written to: an older open one could not be renamed, and must not block those after it.
    sealed: name.endsWith(SEALED) || index < names.length - 1,
  }));
}

/** Names a segment that begins now. `last`: the name of the previous one. */
export function newSegment(folder: string, last: string): Segment {
  // If the clock was set back, the new segment must still sort after older ones.
  const now = String(Math.max(Date.now(), Number.parseInt(last || '0', 10) + 1)).padStart(15, '0');
  return { name: now, path: join(folder, now + OPEN), sealed: false };
}

/** When a segment began, in ms since 1970. */
export function startOf({ name }: Segment): number {
  return Number.parseInt(name, 10);
}

/** Marks a segment as complete, so that it can be removed once it is read. */
export function sealSegment(folder: string, name: string): void {
  renameSync(join(folder, name + OPEN), join(folder, name + SEALED));
}

/** The path of a segment once it is sealed. */
export function sealedPath({ name, path }: Segment): string {
  return join(dirname(path), name + SEALED);
}

/** Seals the open segments of a worker that has ended. */
export function sealOrphan(folder: string): void {
  for (const { name, path } of segmentsIn(folder)) if (path.endsWith(OPEN)) sealSegment(folder, name);
}

/** The name of the folder of all spools where it is read as a spool itself. */
export const ITSELF = '.';

/** The spools in a folder: one for each worker, including ended ones; and the folder itself. */
export function spoolsIn(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    return [ITSELF, ...entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)];
  } catch {
    // The first worker creates it. If it can't be read, reading the folder itself reports why.
    return [ITSELF];
  }
}
