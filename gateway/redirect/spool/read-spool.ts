import { closeSync, fstatSync, openSync, readSync, rmSync, statSync } from 'node:fs';
import type { Logger } from 'pino';
import { type Frames, readFrames } from './frames.ts';
import { type Segment, segmentsIn, startOf } from './segments.ts';

/** Reads a spool while another process writes to it. */
export interface SpoolReader {
  /**
   * The oldest payloads that were not acknowledged by `forget`; undefined if there are none. Removes completed segments
   * and skips unreadable ones. Throws if the folder can't be read.
   */
  next(): UnpublishedScans | undefined;
  /** Whether the first `bytes` of a segment have been acknowledged. */
  isForgotten(segment: string, bytes: number): boolean;
  /** The number of bytes not yet acknowledged, when the folder could last be read. */
  depth(): number;
  /**
   * How long the oldest bytes that were not acknowledged have waited, at most, in ms; undefined if there are none. Too
   * short for those written before this process started, if the clock was set back before.
   */
  waitingMs(): number | undefined;
}

/** Payloads to publish, in order. */
export interface UnpublishedScans {
  readonly payloads: readonly Uint8Array[];
  /** Acknowledges them. Until then `next` returns them again. */
  forget(): void;
}

const READ_BYTES = 1024 * 1024;
/** The time until the next attempt to read or to remove a segment, in ms. */
const RETRY_MS = 60_000;

/** Opens a spool for reading. `take` disposes of a completed segment; by default it is deleted. */
export function readSpool(
  folder: string,
  logger: Logger,
  take: (path: string) => void = (path) => rmSync(path, { force: true }),
): SpoolReader {
  /** The current segment, and how many of its bytes were acknowledged. */
  let name = '';
  let done = 0;
  /** When all bytes of the current segment were last acknowledged, by `performance.now()`. */
  let caughtUp = Number.NEGATIVE_INFINITY;
  /** When each segment began, by `performance.now()`: the clock by which they are named may be set back. */
  let starts = new Map<string, number>();
  /** Sealed segments to be read, oldest first; the folder is listed again once they are. */
  let waiting: Segment[] = [];
  /** The sizes of sealed segments, which don't change any more. */
  const sizes = new Map<string, number>();
  let depth = 0;
  /** Completed segments that can't be removed, and when each is tried again. */
  const stuck = new Map<string, number>();
  /** Unreadable segments, and when each is tried again: they don't block those after them. */
  const unreadable = new Map<string, number>();

  function isNext({ name }: Segment): boolean {
    return (unreadable.get(name) ?? 0) <= performance.now();
  }

  /** Whether all of a segment was acknowledged although it could not be removed, which is tried again now and then. */
  function isCompleted(segment: Segment): boolean {
    const retryAt = stuck.get(segment.name);
    if (retryAt !== undefined && retryAt <= performance.now()) remove(segment);
    return retryAt !== undefined;
  }

  function listSegments(): Segment[] {
    const segments = segmentsIn(folder);
    const now = performance.now();
    const firstStart = (segment: Segment) => now - Math.max(0, Date.now() - startOf(segment));
    starts = new Map(segments.map((segment) => [segment.name, starts.get(segment.name) ?? firstStart(segment)]));
    return segments;
  }

  function nextSegment(): Segment | undefined {
    const known = waiting.find(isNext);
    if (known) return known;
    const segments = listSegments().filter((segment) => !isCompleted(segment));
    waiting = segments.filter(({ sealed }) => sealed);
    return segments.find(isNext);
  }

  function read(segment: Segment): Frames {
    const { bytes, atEnd } = readFrom(segment.path, done);
    const frames = readFrames(bytes, !segment.sealed ? 'open' : atEnd ? 'nothing' : 'more');
    const { damaged } = frames;
    if (damaged > 0) logger.error({ segment: segment.path, damaged }, 'damaged bytes in a spool were skipped');
    return frames;
  }

  function remove(segment: Segment): void {
    sizes.delete(segment.name);
    try {
      take(segment.path);
      stuck.delete(segment.name);
    } catch (error) {
      stuck.set(segment.name, performance.now() + RETRY_MS);
      logger.error({ err: error, segment: segment.path }, 'a shipped segment can’t be removed');
    }
  }

  function sizeOf(segment: Segment): number {
    const size = sizes.get(segment.name) ?? statSync(segment.path, { throwIfNoEntry: false })?.size;
    if (segment.sealed && size !== undefined) sizes.set(segment.name, size);
    return size ?? 0;
  }

  /** The number of bytes of a segment that are still to be published. */
  function waitingIn(segment: Segment): number {
    if (stuck.has(segment.name)) return 0;
    return Math.max(0, sizeOf(segment) - (segment.name === name ? done : 0));
  }

  return {
    next() {
      for (;;) {
        // Its state is determined before reading: an open segment may grow while it is read, and then be sealed.
        const segment = nextSegment();
        if (!segment) return undefined;
        if (segment.name !== name) [name, done, caughtUp] = [segment.name, 0, Number.NEGATIVE_INFINITY];
        let frames: Frames;
        try {
          frames = read(segment);
        } catch (error) {
          waiting = [];
          // It was sealed, and so renamed, in the meantime.
          if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue;
          unreadable.set(segment.name, performance.now() + RETRY_MS);
          logger.error({ err: error, segment: segment.path }, 'a segment can’t be read; it is tried again in a minute');
          continue;
        }
        if (frames.payloads.length > 0) {
          const reached = done + frames.read;
          return {
            payloads: frames.payloads,
            forget() {
              done = reached;
            },
          };
        }
        if (frames.read > 0) done += frames.read;
        else if (segment.sealed) {
          waiting.splice(waiting.indexOf(segment), 1);
          remove(segment);
        } else {
          caughtUp = performance.now();
          return undefined;
        }
      }
    },
    isForgotten: (segment, bytes) => segment === name && bytes <= done,
    depth() {
      try {
        depth = listSegments().reduce((sum, segment) => sum + waitingIn(segment), 0);
      } catch {
        // `next` reports it; a status query must not fail because of it.
      }
      return depth;
    },
    waitingMs() {
      try {
        const oldest = listSegments().find((segment) => waitingIn(segment) > 0);
        if (!oldest) return undefined;
        const start = starts.get(oldest.name) ?? 0;
        return performance.now() - Math.max(start, oldest.name === name ? caughtUp : start);
      } catch {
        // `next` reports it.
        return undefined;
      }
    },
  };
}

/** Reads at most 1 MiB of a file, from offset `from`. */
function readFrom(path: string, from: number): { bytes: Buffer; atEnd: boolean } {
  const fd = openSync(path, 'r');
  try {
    const { size } = fstatSync(fd);
    const buffer = Buffer.allocUnsafe(Math.max(0, Math.min(READ_BYTES, size - from)));
    const bytes = buffer.subarray(0, readSync(fd, buffer, 0, buffer.length, from));
    return { bytes, atEnd: from + bytes.length >= size };
  } finally {
    closeSync(fd);
  }
}
