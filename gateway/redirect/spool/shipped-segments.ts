import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Logger } from 'pino';
import { HOUR_MS } from '../../../common/runtime/durations.ts';

/** The folder in `DATA_DIR` for shipped segments. */
export const SHIPPED = 'shipped';

/** How often expired segments are removed, in ms. */
const SWEEP_MS = 60_000;

/** The share of the disk that has to stay free for new scans. */
const FREE_SHARE = 0.1;

/** A segment whose scans were published, kept so that they can be published again. */
export interface ShippedSegment {
  readonly path: string;
  /** When its last scan was written, in ms since 1970. */
  readonly written: number;
}

/** Disposes of segments whose scans were published: keeps or deletes them. */
export interface ShippedSegments {
  /** Removes a segment from its spool. */
  take(path: string): void;
  stop(): void;
}

/**
 * Keeps shipped segments in `folder`, on the disk of the spools, for `hours`, or less if the disk is nearly full. With
 * 0 they are deleted at once.
 */
export function keepShipped(folder: string, hours: number, logger: Logger): ShippedSegments {
  /** The names of the kept segments, oldest first; undefined until the folder could be listed. */
  let kept: string[] | undefined;

  function sweep(): void {
    try {
      kept ??= namesIn(folder);
      const early = removeOutdated(folder, kept, Date.now() - hours * HOUR_MS);
      if (early > 0) logger.error({ segments: early }, 'shipped segments are deleted early: the disk is nearly full');
    } catch (error) {
      logger.error({ err: error }, 'shipped segments can’t be removed');
    }
  }

  function keep(path: string): void {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      sync(path);
      // Segments of two spools may have the same name.
      const name = `${basename(path, '.scans')}-${basename(dirname(path))}.scans`;
      renameSync(path, join(folder, name));
      // Nearly always at the end: an older one comes only from a spool that was published late.
      kept?.splice(kept.findLastIndex((other) => other < name) + 1, 0, name);
    } catch (error) {
      // Its scans were published: a second copy must not fill the disk.
      logger.error({ err: error }, 'a shipped segment can’t be kept and is deleted');
      rmSync(path, { force: true });
    }
  }

  sweep();
  const sweeping = setInterval(sweep, SWEEP_MS).unref();
  return {
    take(path) {
      if (hours > 0) keep(path);
      else rmSync(path, { force: true });
    },
    stop: () => clearInterval(sweeping),
  };
}

/** The kept segments, oldest first; empty if there is no such folder. */
export function shippedSegmentsIn(folder: string): ShippedSegment[] {
  return namesIn(folder).flatMap((name) => {
    const path = join(folder, name);
    // It may have been removed meanwhile.
    const written = writtenAt(path);
    return written === undefined ? [] : [{ path, written }];
  });
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

function writtenAt(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
}

/** Syncs a segment to disk: its last scans may not be there yet, and nothing else syncs it later. */
function sync(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/**
 * Removes the oldest segments in `names`, up to the first one that may stay, and returns how many were removed before
 * they expired. Those after that one are not examined: there may be 60,000 for each worker.
 */
function removeOutdated(folder: string, names: string[], before: number): number {
  let early = 0;
  for (let [name] = names; name !== undefined; [name] = names) {
    const path = join(folder, name);
    const isOutdated = (writtenAt(path) ?? 0) < before;
    if (!isOutdated && !isNearlyFull(folder)) break;
    rmSync(path, { force: true });
    names.shift();
    if (!isOutdated) early++;
  }
  return early;
}

function isNearlyFull(folder: string): boolean {
  const { bavail, blocks } = statfsSync(folder);
  return bavail < blocks * FREE_SHARE;
}
