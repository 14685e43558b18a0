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

/** The folder of `DATA_DIR` that they are kept in. */
export const SHIPPED = 'shipped';

const HOUR_MS = 3_600_000;
/** How often segments are looked for that were kept for long enough, in ms. */
const SWEEP_MS = 60_000;
/** The share of the disk that kept segments leave to scans that are still to come. */
const FREE_SHARE = 0.1;

/** A segment whose scans the log has taken, kept so that they can be published again. */
export interface ShippedSegment {
  readonly path: string;
  /** When its last scan was written, in ms since 1970. */
  readonly written: number;
}

/** What becomes of segments whose scans the log has taken. */
export interface ShippedSegments {
  /** Takes a segment out of its spool. */
  take(path: string): void;
  stop(): void;
}

/**
 * Keeps shipped segments in `folder`, on the disk of the spools, for so many hours, and less where the disk is nearly
 * full. With 0 hours nothing is kept.
 */
export function keepShipped(folder: string, hours: number, logger: Logger): ShippedSegments {
  function sweep(): void {
    try {
      removeOutdated(folder, Date.now() - hours * HOUR_MS);
    } catch (error) {
      logger.error({ err: error }, 'shipped segments can’t be removed');
    }
  }

  function keep(path: string): void {
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      force(path);
      // Segments of two spools may have one name.
      renameSync(path, join(folder, `${basename(path, '.scans')}-${basename(dirname(path))}.scans`));
    } catch (error) {
      // The log has its scans: a full disk must not fill up with what is only a second copy.
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

/** The kept segments, oldest first; none where there is no such folder. */
export function shippedSegmentsIn(folder: string): ShippedSegment[] {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
  return names.sort().flatMap((name) => {
    const path = join(folder, name);
    // It may be removed meanwhile.
    const written = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
    return written === undefined ? [] : [{ path, written }];
  });
}

/** From its spool its last scans may not have come to the disk, and nobody forces it there later. */
function force(path: string): void {
  const file = openSync(path, 'r');
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function removeOutdated(folder: string, before: number): void {
  for (const { path, written } of shippedSegmentsIn(folder)) {
    if (written < before || isNearlyFull(folder)) rmSync(path, { force: true });
  }
}

function isNearlyFull(folder: string): boolean {
  const { bavail, blocks } = statfsSync(folder);
  return bavail < blocks * FREE_SHARE;
}
