import { statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { segmentsIn } from './segments.ts';

/** How many bytes a segment had when it was looked at last, and how many of them were forced to disk. */
interface Seen {
  readonly size: number;
  readonly forced: number;
}

/**
 * Gives a function that forces to disk what of a spool was already there when it was called last, so that a power cut
 * costs what two calls lie apart. What `isDone` by then, the first `bytes` of a segment, need not get there at all: most
 * segments never do, and a disk writes nothing while the log takes scans.
 */
export function forceSpool(folder: string, isDone: (segment: string, bytes: number) => boolean): () => Promise<void> {
  let seen = new Map<string, Seen>();
  return async () => {
    const now = new Map<string, Seen>();
    for (const { name, path } of segmentsIn(folder)) {
      const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
      const before = seen.get(name) ?? { size: 0, forced: 0 };
      const waits = before.size > before.forced && !isDone(name, before.size);
      const isForced = waits && (await force(path));
      if (isForced && before.forced === 0) {
        // A file can be lost with its whole content when the name of it, or of its folder, is not on disk.
        await force(folder);
        await force(dirname(folder));
      }
      now.set(name, { size, forced: isForced ? size : before.forced });
    }
    seen = now;
  };
}

/** Whether it is on disk; it isn't when it has just got another name, or was removed. */
async function force(path: string): Promise<boolean> {
  try {
    await using file = await open(path);
    await file.sync();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
