import { closeSync, fstatSync, openSync, readSync, rmSync, statSync } from 'node:fs';
import type { Logger } from 'pino';
import { type Frames, readFrames } from './frames.ts';
import { type Segment, segmentsIn } from './segments.ts';

/** What a spool holds, read beside the process that writes it. */
export interface SpoolReader {
  /**
   * The oldest payloads that were not forgotten; undefined when there are none. Removes what is done with, and steps
   * over segments that can't be read. Throws when the folder can't be.
   */
  next(): Batch | undefined;
  /** Whether the first `bytes` of a segment were forgotten. */
  isForgotten(segment: string, bytes: number): boolean;
  /** Bytes that were not forgotten, as far as the folder could be read lately. */
  depth(): number;
}

/** Payloads to carry on, in their order. */
export interface Batch {
  readonly payloads: readonly Uint8Array[];
  /** They are safe elsewhere. Until this is called they are the next ones again. */
  forget(): void;
}

const READ_BYTES = 1024 * 1024;
/** How long a segment that can't be read is left alone, in ms. */
const ASIDE_MS = 60_000;

/** `take`: takes a segment out of the spool that is done with; by default it is deleted. */
export function readSpool(
  folder: string,
  logger: Logger,
  take: (path: string) => void = (path) => rmSync(path, { force: true }),
): SpoolReader {
  /** The oldest segment, and how many of its bytes are done with. */
  let name = '';
  let done = 0;
  let depth = 0;
  /** Segments that are done with and can't be removed. */
  const stuck = new Set<string>();
  /** Segments that can't be read, and when each is tried again: they hold up none behind them. */
  const aside = new Map<string, number>();

  function isNext({ name }: Segment): boolean {
    return !stuck.has(name) && (aside.get(name) ?? 0) <= performance.now();
  }

  function read(segment: Segment): Frames {
    const { bytes, atEnd } = readFrom(segment.path, done);
    const frames = readFrames(bytes, !segment.sealed ? 'unwritten' : atEnd ? 'nothing' : 'more');
    const { damaged } = frames;
    if (damaged > 0) logger.error({ segment: segment.path, damaged }, 'bytes that are no whole scan were skipped');
    return frames;
  }

  function remove(segment: Segment): void {
    try {
      take(segment.path);
    } catch (error) {
      stuck.add(segment.name);
      logger.error({ err: error, segment: segment.path }, 'a segment that is done with can’t be removed');
    }
  }

  return {
    next() {
      for (;;) {
        // Told apart before it is read: an open one may grow behind what is read, and be sealed then.
        const segment = segmentsIn(folder).find(isNext);
        if (!segment) return undefined;
        if (segment.name !== name) [name, done] = [segment.name, 0];
        let frames: Frames;
        try {
          frames = read(segment);
        } catch (error) {
          // It was sealed under our hands.
          if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue;
          aside.set(segment.name, performance.now() + ASIDE_MS);
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
        else if (segment.sealed) remove(segment);
        else return undefined;
      }
    },
    isForgotten: (segment, bytes) => segment === name && bytes <= done,
    depth() {
      try {
        const sizes = segmentsIn(folder).map(({ path }) => statSync(path, { throwIfNoEntry: false })?.size ?? 0);
        depth = Math.max(0, sizes.reduce((sum, size) => sum + size, 0) - done);
      } catch {
        // `next` says so; who asks how deep it is must not fail over it.
      }
      return depth;
    },
  };
}

/** At most a mebibyte of a file. */
export function readFrom(path: string, from: number): { bytes: Buffer; atEnd: boolean } {
  const fd = openSync(path, 'r');
  try {
    const { size } = fstatSync(fd);
    const room = Buffer.allocUnsafe(Math.max(0, Math.min(READ_BYTES, size - from)));
    const bytes = room.subarray(0, readSync(fd, room, 0, room.length, from));
    return { bytes, atEnd: from + bytes.length >= size };
  } finally {
    closeSync(fd);
  }
}
