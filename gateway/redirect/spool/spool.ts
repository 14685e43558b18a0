import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import type { Logger } from 'pino';
import { frameBytes, writeFrame } from './frames.ts';
import { holdFrames, type Offer } from './held-frames.ts';
import { newSegment, type Segment, sealSegment } from './segments.ts';

/** Scans that were answered and that the log does not have yet, on disk: they outlive the process. */
export interface Spool {
  /**
   * Copies a payload (1 to 16,384 bytes) and calls `kept` once it is written: one write for all payloads of a turn of
   * the event loop. A disk that takes nothing holds no answer back: the payload then waits in memory.
   */
  append(payload: Uint8Array, kept: () => void): void;
  status(): SpoolStatus;
  /** Writes what waits; resolves when it is on disk or safe elsewhere, or when `graceMs` are over. */
  close(graceMs: number): Promise<void>;
}

export interface SpoolStatus {
  /** Why the disk takes nothing; undefined while all is well. */
  readonly failing: string | undefined;
  /** Writes that failed since the start. */
  readonly failures: number;
  /** Bytes that wait in memory because the disk takes none. */
  readonly held: number;
  /** Payloads that there was no memory left for: the one way to lose a scan. */
  readonly lost: number;
}

export interface SpoolOptions {
  /** Of this process alone: no other one ever writes there. The carrier reads and removes what is written. */
  readonly folder: string;
  readonly logger: Logger;
  readonly offer: Offer;
}

const SEGMENT_BYTES = 8 * 1024 * 1024;
/** Nothing is added to a segment of this age: it holds what readers did, and goes when it is read. */
const SEGMENT_MS = 10_000;
/** The scans of a turn of the event loop; more room is made when it is too little. */
const TURN_BYTES = 256 * 1024;
/** How often a disk that takes nothing is tried again. */
const RETRY_MS = 1_000;

/**
 * Opens a new spool, which survives the end of the process at any moment. That of the machine takes the scans that the
 * log does not have and the carrier has not forced to disk yet: an fsync every turn would halve the speed.
 */
export function openSpool({ folder, logger, offer }: SpoolOptions): Spool {
  let last = '';
  let open: (Segment & { fd: number; size: number; since: number }) | undefined;
  /** The frames of this turn, one after the other in the first `filled` bytes, and whom to tell that they are kept. */
  let turn = Buffer.allocUnsafeSlow(TURN_BYTES);
  let filled = 0;
  let waiting: (() => void)[] = [];
  const held = holdFrames(offer, logger);
  let failing: string | undefined;
  let failures = 0;

  function openSegment() {
    const segment = newSegment(folder, last);
    last = segment.name;
    open = { ...segment, fd: openSync(segment.path, 'ax', 0o600), size: 0, since: performance.now() };
    return open;
  }

  function seal(): void {
    if (!open) return;
    const { fd, name } = open;
    open = undefined;
    closeSync(fd);
    sealSegment(folder, name);
  }

  function write(bytes: Buffer): void {
    const segment = open ?? openSegment();
    for (let written = 0; written < bytes.length; ) written += writeSync(segment.fd, bytes, written);
    segment.size += bytes.length;
    if (segment.size >= SEGMENT_BYTES) seal();
  }

  /** Writes what is held, oldest first, and then `bytes`; false when the disk doesn't take it. */
  function reachesDisk(bytes: Buffer): boolean {
    try {
      if (failing !== undefined) mkdirSync(folder, { recursive: true });
      for (const frames of held.all()) write(frames);
      if (bytes.length > 0) write(bytes);
    } catch (error) {
      failed(error);
      return false;
    }
    held.clear();
    if (failing !== undefined) logger.info('scans are written to disk again');
    failing = undefined;
    return true;
  }

  function failed(error: unknown): void {
    if (failing === undefined) logger.error({ err: error }, 'scans can’t be written to disk; they wait in memory');
    failing = (error as NodeJS.ErrnoException).code ?? 'unknown';
    failures++;
    try {
      // A part of what failed may be in it, and may have been read: it is not cut off, and nothing comes behind it.
      seal();
    } catch {
      // It is sealed once this process is gone.
    }
  }

  function flush(): void {
    const answers = waiting;
    waiting = [];
    const bytes = turn.subarray(0, filled);
    filled = 0;
    if (failing !== undefined || !reachesDisk(bytes)) held.hold(bytes, answers.length);
    for (const answer of answers) answer();
  }

  function tend(): void {
    if (failing !== undefined) {
      if (!reachesDisk(Buffer.alloc(0))) held.offer();
    } else if (open && performance.now() - open.since >= SEGMENT_MS) {
      try {
        seal();
      } catch (error) {
        failed(error);
      }
    }
  }

  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    failed(error);
  }
  const tending = setInterval(tend, RETRY_MS).unref();

  return {
    append(payload, kept) {
      if (waiting.length === 0) setImmediate(flush);
      if (filled + frameBytes(payload) > turn.length) turn = Buffer.concat([turn], turn.length * 2);
      filled = writeFrame(turn, filled, payload);
      waiting.push(kept);
    },
    status: () => ({ failing, failures, held: held.bytes, lost: held.lost }),
    async close(graceMs) {
      if (waiting.length > 0) flush();
      for (const deadline = performance.now() + graceMs; held.bytes > 0 && performance.now() < deadline; ) {
        tend();
        await new Promise((resolve) => setTimeout(resolve, Math.min(100, graceMs)));
      }
      clearInterval(tending);
      if (held.bytes > 0 && !reachesDisk(Buffer.alloc(0))) {
        logger.error({ bytes: held.bytes }, 'scans were lost: the process ends and nothing takes them');
      }
      try {
        seal();
      } catch (error) {
        failed(error);
      }
    },
  };
}
