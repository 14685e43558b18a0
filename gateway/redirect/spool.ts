import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { frameBytes, readFrames, writeFrame } from './frames.ts';

/** Scans that were answered and that the log does not have yet, on disk: they outlive the process. */
export interface Spool {
  /**
   * Copies a payload (1 to 16,384 bytes) and calls `kept` once it is written: one write for all payloads of a turn of
   * the event loop. A disk that takes nothing holds no answer back: the payload then waits in memory.
   */
  append(payload: Uint8Array, kept: () => void): void;
  /** The oldest payloads that were not forgotten; undefined when there are none. */
  next(): Batch | undefined;
  /** Resolves when there may be something new. */
  arrival(): Promise<void>;
  status(): SpoolStatus;
  /** Writes what waits. */
  close(): void;
}

/** Payloads to carry on, in their order. */
export interface Batch {
  readonly payloads: readonly Uint8Array[];
  /** They are safe elsewhere. Until this is called they are the next ones again. */
  forget(): void;
}

export interface SpoolStatus {
  /** Why the disk takes nothing; undefined while all is well. */
  readonly failing: string | undefined;
  /** Bytes that wait in memory because the disk takes none. */
  readonly held: number;
  /** Payloads that there was no memory left for: the one way to lose a scan. */
  readonly lost: number;
}

/** Frames one after the other, in a file; or in memory while the disk takes none. */
interface Segment {
  readonly path: string;
  size: number;
  /** Bytes that are safe elsewhere. */
  done: number;
  memory: Buffer[] | undefined;
}

const SUFFIX = '.scans';
const SEGMENT_BYTES = 8 * 1024 * 1024;
/** A segment of which nothing is needed any more is removed at this age: it holds addresses of readers. */
const SEGMENT_MS = 10_000;
const READ_BYTES = 1024 * 1024;
/** The scans of a turn of the event loop; more room is made when it is too little. */
const TURN_BYTES = 256 * 1024;
const HELD_BYTES = 64 * 1024 * 1024;
/** How often a disk that takes nothing is tried again. */
const RETRY_MS = 1_000;

/**
 * Opens the spool in `folder`, which only one process may use at a time. Segments of earlier runs are given out first;
 * nothing is appended to them, so what a crash left at their end stays at their end. Throws when the folder can't be
 * made. Survives the end of the process, not of the machine: that would take an fsync every turn, at half the speed.
 */
export function openSpool(folder: string, logger: Logger): Spool {
  mkdirSync(folder, { recursive: true });
  const names = readdirSync(folder).filter((name) => name.endsWith(SUFFIX));
  const segments: Segment[] = names.sort().map((name) => {
    const path = join(folder, name);
    return { path, size: statSync(path).size, done: 0, memory: undefined };
  });
  let number = Number.parseInt(names.at(-1) ?? '0', 10);
  /** The last segment, while it grows: a file of which `fd` is the descriptor, or memory. */
  let open: { segment: Segment; fd: number | undefined; since: number } | undefined;
  /** The frames of this turn, one after the other in the first `filled` bytes, and whom to tell that they are kept. */
  let turn = Buffer.allocUnsafeSlow(TURN_BYTES);
  let filled = 0;
  let waiting: (() => void)[] = [];
  let arrived = Promise.withResolvers<void>();
  let failing: string | undefined;
  let retryAt = 0;
  let held = 0;
  let lost = 0;

  function openSegment(memory: Buffer[] | undefined) {
    number++;
    const path = join(folder, `${String(number).padStart(12, '0')}${SUFFIX}`);
    const fd = memory ? undefined : openSync(path, 'ax', 0o600);
    const segment: Segment = { path, size: 0, done: 0, memory };
    segments.push(segment);
    open = { segment, fd, since: Date.now() };
    return open;
  }

  function seal(): void {
    if (open?.fd !== undefined) closeSync(open.fd);
    open = undefined;
  }

  function write(bytes: Buffer): void {
    if (open?.segment.memory) seal();
    const { segment, fd = -1 } = open ?? openSegment(undefined);
    try {
      for (let written = 0; written < bytes.length; ) written += writeSync(fd, bytes, written);
    } catch (error) {
      ftruncateSync(fd, segment.size);
      throw error;
    }
    segment.size += bytes.length;
    if (segment.size >= SEGMENT_BYTES) seal();
  }

  function hold(bytes: Buffer, payloads: number): void {
    if (held + bytes.length > HELD_BYTES) {
      lost += payloads;
      logger.error({ lost }, 'scans were lost: neither disk nor memory takes them');
      return;
    }
    if (open && !open.segment.memory) seal();
    const { segment } = open ?? openSegment([]);
    segment.memory?.push(Buffer.from(bytes));
    segment.size += bytes.length;
    held += bytes.length;
    if (segment.size >= SEGMENT_BYTES) seal();
  }

  /** Writes what is held in memory, and then `bytes`. Gives false when the disk takes them not, or is not tried yet. */
  function reachesDisk(bytes: Buffer): boolean {
    if (failing !== undefined && Date.now() < retryAt) return false;
    try {
      for (const segment of segments.filter(({ memory }) => memory)) {
        if (open?.segment === segment) seal();
        writeFileSync(segment.path, Buffer.concat(segment.memory ?? []), { mode: 0o600 });
        segment.memory = undefined;
        held -= segment.size;
      }
      if (bytes.length > 0) write(bytes);
    } catch (error) {
      if (failing === undefined) logger.error({ err: error }, 'scans can’t be written to disk; they wait in memory');
      failing = (error as NodeJS.ErrnoException).code ?? 'unknown';
      retryAt = Date.now() + RETRY_MS;
      return false;
    }
    if (failing !== undefined) logger.info('scans are written to disk again');
    failing = undefined;
    return true;
  }

  function flush(): void {
    const answers = waiting;
    waiting = [];
    const bytes = turn.subarray(0, filled);
    filled = 0;
    if (!reachesDisk(bytes)) hold(bytes, answers.length);
    for (const answer of answers) answer();
    arrived.resolve();
    arrived = Promise.withResolvers();
  }

  function nextOf(segment: Segment): Batch | undefined {
    while (segment.done < segment.size) {
      const bytes = read(segment);
      // A file that somebody cut short has no more to give.
      if (bytes.length === 0) segment.size = segment.done;
      const { payloads, read: length, damaged } = readFrames(bytes, segment.done + bytes.length === segment.size);
      if (damaged > 0) logger.error({ segment: segment.path, damaged }, 'bytes that are no whole scan were skipped');
      if (payloads.length > 0) {
        const done = segment.done + length;
        return {
          payloads,
          forget() {
            segment.done = done;
          },
        };
      }
      segment.done += length;
    }
    return undefined;
  }

  function remove(segment: Segment): void {
    segments.shift();
    if (segment.memory) {
      held -= segment.size;
      return;
    }
    try {
      rmSync(segment.path, { force: true });
    } catch (error) {
      logger.error({ err: error, segment: segment.path }, 'a segment that is done with can’t be removed');
    }
  }

  return {
    append(payload, kept) {
      if (waiting.length === 0) setImmediate(flush);
      if (filled + frameBytes(payload) > turn.length) turn = Buffer.concat([turn], turn.length * 2);
      filled = writeFrame(turn, filled, payload);
      waiting.push(kept);
    },
    next() {
      if (failing !== undefined) reachesDisk(Buffer.alloc(0));
      for (let segment = segments[0]; segment; segment = segments[0]) {
        const batch = nextOf(segment);
        if (batch) return batch;
        if (open?.segment === segment) {
          if (Date.now() - open.since < SEGMENT_MS) return undefined;
          seal();
        }
        remove(segment);
      }
      return undefined;
    },
    arrival: () => arrived.promise,
    status: () => ({ failing, held, lost }),
    close() {
      if (waiting.length > 0) flush();
      retryAt = 0;
      if (failing !== undefined && !reachesDisk(Buffer.alloc(0))) {
        logger.error({ bytes: held }, 'scans were lost: the process ends and the disk takes nothing');
      }
      seal();
    },
  };
}

/** The next bytes of a segment, at most a mebibyte of a file. */
function read({ path, size, done, memory }: Segment): Buffer {
  if (memory) return Buffer.concat(memory).subarray(done);
  const fd = openSync(path, 'r');
  try {
    const bytes = Buffer.allocUnsafe(Math.min(READ_BYTES, size - done));
    return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, done));
  } finally {
    closeSync(fd);
  }
}
