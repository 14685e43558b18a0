import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { frame, readFrames } from './frames.ts';

/** Scans that were answered and not yet carried to the log, on disk: they outlive the process. */
export interface Spool {
  /**
   * Keeps a payload and calls `kept` once it is written: one write for all payloads of a turn of the event loop. A disk
   * that takes nothing holds no answer back: the payload then waits in memory.
   */
  append(payload: Uint8Array, kept: () => void): void;
  /** The oldest payloads that were not given out yet; empty when there are none. */
  next(): Uint8Array[];
  /** What `next` gave last is safe elsewhere: forgets it. */
  forget(): void;
  status(): SpoolStatus;
  /** Writes what waits and closes the segment. */
  close(): void;
}

export interface SpoolStatus {
  /** Why nothing can be written; null while all is well. */
  readonly failing: string | null;
  /** Segments on disk. */
  readonly segments: number;
  /** Payloads that wait in memory because the disk takes none. */
  readonly held: number;
  /** Payloads that no memory was left for. The one way to lose a scan; loud. */
  readonly dropped: number;
}

const SEGMENT_BYTES = 8 * 1024 * 1024;
/** An open segment that everything was given out of is replaced after this, so that a restart repeats little. */
const SEGMENT_MS = 10_000;
const READ_BYTES = 1024 * 1024;
const HELD_BYTES = 64 * 1024 * 1024;
const SUFFIX = '.spool';
const NOTHING = Buffer.alloc(0);

interface Segment {
  readonly path: string;
  /** Bytes given out and forgotten. */
  done: number;
}

/** Opens the spool in `folder`; segments of earlier runs are given out first. */
export function openSpool(folder: string, logger: Logger): Spool {
  mkdirSync(folder, { recursive: true });
  const segments: Segment[] = readdirSync(folder)
    .filter((name) => name.endsWith(SUFFIX))
    .sort()
    .map((name) => ({ path: join(folder, name), done: 0 }));
  let made = 0;
  let open: { fd: number; segment: Segment; size: number; since: number } | undefined;
  let turn: { frames: Buffer[]; kept: (() => void)[] } = { frames: [], kept: [] };
  let held: Buffer[] = [];
  let heldBytes = 0;
  let dropped = 0;
  let failing: string | null = null;
  let given: { segment: Segment; bytes: number } | { held: number } | undefined;

  function openSegment() {
    const name = `${String(Date.now()).padStart(15, '0')}-${String(made++).padStart(6, '0')}${SUFFIX}`;
    const segment = { path: join(folder, name), done: 0 };
    const fd = openSync(segment.path, 'ax');
    segments.push(segment);
    return { fd, segment, size: 0, since: Date.now() };
  }

  function seal(): void {
    if (open) closeSync(open.fd);
    open = undefined;
  }

  function write(frames: readonly Buffer[]): void {
    open ??= openSegment();
    const bytes = Buffer.concat(frames);
    try {
      let written = 0;
      while (written < bytes.length) written += writeSync(open.fd, bytes, written);
    } catch (error) {
      // Half a frame in the middle would hide what follows.
      ftruncateSync(open.fd, open.size);
      throw error;
    }
    open.size += bytes.length;
    if (open.size >= SEGMENT_BYTES) seal();
  }

  function hold(frames: readonly Buffer[]): void {
    for (const each of frames) {
      if (heldBytes + each.length > HELD_BYTES) {
        dropped++;
      } else {
        held.push(each);
        heldBytes += each.length;
      }
    }
  }

  function flush(): void {
    const { frames, kept } = turn;
    turn = { frames: [], kept: [] };
    try {
      write(frames);
      if (failing !== null) logger.info('scans are spooled to disk again');
      failing = null;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (failing === null) logger.error({ err: error }, 'scans can not be spooled to disk; they wait in memory');
      failing = code ?? message;
      hold(frames);
      if (dropped > 0) logger.error({ dropped }, 'scans were lost: neither disk nor memory takes them');
    }
    for (const done of kept) done();
  }

  return {
    append(payload, kept) {
      if (turn.frames.length === 0) setImmediate(flush);
      turn.frames.push(frame(payload));
      turn.kept.push(kept);
    },
    next() {
      for (let segment = segments[0]; segment; segment = segments[0]) {
        const bytes = open?.segment === segment && segment.done === open.size ? NOTHING : readFrom(segment);
        const frames = readFrames(bytes);
        if (frames.corrupt > 0)
          logger.error({ segment: segment.path, corrupt: frames.corrupt }, 'corrupt scans were skipped');
        if (frames.read > 0 && frames.payloads.length > 0) {
          given = { segment, bytes: frames.read };
          return frames.payloads;
        }
        segment.done += frames.read;
        const isOpen = open?.segment === segment;
        if (isOpen && !frames.lost) {
          if (open && open.size > 0 && Date.now() - open.since >= SEGMENT_MS) seal();
          break;
        }
        if (isOpen) seal();
        leave(segment, frames.lost, bytes.length - frames.read);
      }
      if (held.length === 0) return [];
      given = { held: held.length };
      return held.flatMap((each) => readFrames(each).payloads);
    },
    forget() {
      if (given && 'segment' in given) {
        given.segment.done += given.bytes;
      } else if (given) {
        const gone = held.slice(0, given.held);
        held = held.slice(given.held);
        heldBytes -= gone.reduce((sum, each) => sum + each.length, 0);
      }
      given = undefined;
    },
    status: () => ({ failing, segments: segments.length, held: held.length, dropped }),
    close() {
      if (turn.frames.length > 0) flush();
      seal();
    },
  };

  function readFrom(segment: Segment): Buffer {
    const fd = openSync(segment.path, 'r');
    try {
      const bytes = Buffer.allocUnsafe(READ_BYTES);
      return bytes.subarray(0, readSync(fd, bytes, 0, READ_BYTES, segment.done));
    } finally {
      closeSync(fd);
    }
  }

  /** The end of a segment: everything was given out, or what is left is a torn frame, or can't be read at all. */
  function leave(segment: Segment, lost: boolean, left: number): void {
    segments.shift();
    if (lost) {
      logger.error(
        { segment: segment.path, bytes: statSync(segment.path).size - segment.done },
        'a segment is damaged; it is kept aside',
      );
      renameSync(segment.path, `${segment.path}.damaged`);
      return;
    }
    if (left > 0)
      logger.warn({ segment: segment.path, bytes: left }, 'a torn scan at the end of a segment was cut off');
    rmSync(segment.path);
  }
}
