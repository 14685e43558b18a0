import { statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { segmentsIn } from './segments.ts';

/** The size of a segment at the last call, and how many of its bytes were synced to disk, in bytes. */
interface SyncedSegment {
  readonly size: number;
  readonly synced: number;
  /** Whether nothing of it is left to be synced, now or later. */
  readonly isComplete: boolean;
}

const NEW: SyncedSegment = { size: 0, synced: 0, isComplete: false };

/**
 * Returns a function that syncs to disk what a spool contained at the previous call, so that a power cut costs at most
 * the scans of the time between two calls. It skips a segment if `isDone` for its first `bytes`: most segments are
 * never synced, and nothing is written to the disk while the log accepts scans.
 */
export function syncSpool(folder: string, isDone: (segment: string, bytes: number) => boolean): () => Promise<void> {
  let previous = new Map<string, SyncedSegment>();
  return async () => {
    const now = new Map<string, SyncedSegment>();
    for (const { name, path, sealed } of segmentsIn(folder)) {
      const before = previous.get(name) ?? NEW;
      if (before.isComplete) {
        now.set(name, before);
        continue;
      }
      const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
      const isDue = before.size > before.synced && !isDone(name, before.size);
      const isSynced = isDue && (await sync(path));
      if (isSynced && before.synced === 0) {
        // Without its own name and that of its folder on disk, the whole file could be lost.
        await sync(folder);
        await sync(dirname(folder));
      }
      const synced = isSynced ? size : before.synced;
      now.set(name, { size, synced, isComplete: sealed && synced > 0 && synced === size });
    }
    previous = now;
  };
}

/** Syncs a file or folder; false if it was renamed or removed meanwhile. */
async function sync(path: string): Promise<boolean> {
  try {
    await using file = await open(path);
    await file.sync();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
