import { closeSync, existsSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { onTicks } from '../../clock/ticks.ts';
import { diskErrorName } from './disk-error.ts';
import { frameBytes, readFrames, writeFrame } from './frames.ts';
import { holdFrames, type Offer } from './held-frames.ts';
import { newSegment, type Segment, sealedPath, sealSegment } from './segments.ts';

/** A buffer on disk for scans that were answered but not yet published; it survives the process. */
export interface Spool {
  /**
   * Copies a payload (1 to 16,384 bytes) and calls `kept` once it is written: one write for all payloads of an event
   * loop iteration. A failing disk delays no answer: the payload is then held in memory.
   */
  append(payload: Uint8Array, kept: () => void): void;
  status(): SpoolStatus;
  /** Writes pending payloads; resolves when they are on disk or in the log, or after `graceMs`. */
  close(graceMs: number): Promise<void>;
}

export interface SpoolStatus {
  /** The error code of the disk; undefined while it can be written. */
  readonly failing: string | undefined;
  /** The number of failed writes since the start. */
  readonly failures: number;
  /** The number of bytes held in memory because the disk can't be written. */
  readonly held: number;
  /** The number of payloads lost because the memory limit was reached. */
  readonly lost: number;
}

export interface SpoolOptions {
  /** Written by this process only. The carrier reads and removes the segments. */
  readonly folder: string;
  readonly logger: Logger;
  readonly offer: Offer;
}

const SEGMENT_BYTES = 8 * 1024 * 1024;
/**
 * A segment of this age is sealed: published scans stay on disk until their segment is sealed, and can then be removed.
 * While the one before it still waits for the log, it is sealed by its size only: otherwise a long outage leaves
 * thousands of them.
 */
const SEGMENT_MS = 10_000;
/** The initial buffer size for the scans of one event loop iteration; it grows on demand. */
const BUFFER_BYTES = 256 * 1024;
/** How often a failing disk is tried again, in ms. */
const RETRY_MS = 1_000;

/**
 * Opens a new spool. It survives the end of the process at any moment. A crash of the machine takes the scans that have
 * neither reached the log nor been synced by the carrier: an fsync in every event loop iteration would halve the
 * throughput.
 */
export function openSpool({ folder, logger, offer }: SpoolOptions): Spool {
  let last = '';
  let open: (Segment & { fd: number; size: number; since: number }) | undefined;
  /** The path of the segment that was sealed last. */
  let sealed = '';
  /** The frames of this event loop iteration, in the first `filled` bytes, and their callbacks. */
  let buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES);
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
    sealed = sealedPath(open);
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

  /** Writes the held frames, oldest first, and then `bytes`; returns whether that succeeded. */
  function tryWriteAll(bytes: Buffer): boolean {
    let written = 0;
    try {
      if (failing !== undefined) mkdirSync(folder, { recursive: true });
      for (const frames of held.all()) {
        write(frames);
        written++;
      }
      if (bytes.length > 0) write(bytes);
      // The log may have taken all scans that waited, which says nothing about the disk.
      else if (written === 0 && failing !== undefined) probe(folder);
    } catch (error) {
      // Frames already written are dropped, or each attempt would write the first ones again and never reach the last.
      if (written > 0) held.drop(written);
      failed(error);
      return false;
    }
    held.drop(written);
    if (failing !== undefined) logger.info('scans are written to disk again');
    failing = undefined;
    return true;
  }

  function failed(error: unknown): void {
    const code = diskErrorName(error as NodeJS.ErrnoException);
    if (failing === undefined)
      logger.error({ err: error, code }, 'scans can’t be written to disk; they wait in memory');
    failing = code;
    failures++;
    try {
      // It may contain a part of the failed write, which may have been read: so it is neither truncated nor appended
      // to.
      seal();
    } catch {
      // The main process seals it once this process has ended.
    }
  }

  function flush(): void {
    const answers = waiting;
    waiting = [];
    const bytes = buffer.subarray(0, filled);
    filled = 0;
    if (failing !== undefined || !tryWriteAll(bytes)) held.hold(bytes, answers.length);
    for (const answer of answers) answer();
  }

  function maintain(): void {
    if (failing !== undefined) {
      if (!tryWriteAll(Buffer.alloc(0))) held.offer();
    } else if (open && performance.now() - open.since >= SEGMENT_MS && !existsSync(sealed)) {
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
  const stopMaintenance = onTicks(RETRY_MS, maintain);

  return {
    append(payload, kept) {
      if (waiting.length === 0) setImmediate(flush);
      if (filled + frameBytes(payload) > buffer.length) buffer = Buffer.concat([buffer], buffer.length * 2);
      filled = writeFrame(buffer, filled, payload);
      waiting.push(kept);
    },
    status: () => ({ failing, failures, held: held.bytes, lost: held.lost }),
    async close(graceMs) {
      if (waiting.length > 0) flush();
      for (const deadline = performance.now() + graceMs; held.bytes > 0 && performance.now() < deadline; ) {
        maintain();
        await new Promise((resolve) => setTimeout(resolve, Math.min(100, graceMs)));
      }
      stopMaintenance();
      if (held.bytes > 0 && !tryWriteAll(Buffer.alloc(0))) {
        const frames = Buffer.concat(held.all());
        logger.error(
          { scans: readFrames(frames, 'nothing').payloads.length, bytes: frames.length },
          'scans were lost: the process ends and they can be neither written to disk nor published',
        );
      }
      try {
        seal();
      } catch (error) {
        failed(error);
      }
    },
  };
}

/**
 * Throws if the disk of a folder can't be written. The file is removed first, so that a kill leaves nothing but an
 * empty one.
 */
function probe(folder: string): void {
  const path = join(folder, 'probe');
  const fd = openSync(path, 'w', 0o600);
  try {
    rmSync(path);
    for (let left = BUFFER_BYTES; left > 0; ) left -= writeSync(fd, Buffer.alloc(left));
  } finally {
    closeSync(fd);
  }
}
