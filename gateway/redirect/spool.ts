import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import type { Logger } from 'pino';
import { frameBytes, writeFrame } from './frames.ts';
import { newSegment, type Segment, sealSegment, sealWhatIsLeft, segmentsIn } from './segments.ts';

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
  /** Only one process may write there at a time; another one reads and removes what is written. */
  readonly folder: string;
  readonly logger: Logger;
  /**
   * Offers frames that the disk does not take to whoever may have a way for them; `taken` is called once they are safe.
   * Nothing else is offered before, until `OFFER_MS` are over.
   */
  offer(frames: Buffer, taken: () => void): void;
}

/** A turn's frames, in memory. */
interface Held {
  readonly frames: Buffer;
  readonly payloads: number;
}

const SEGMENT_BYTES = 8 * 1024 * 1024;
/** Nothing is added to a segment of this age: it holds addresses of readers, and goes when it is read. */
const SEGMENT_MS = 10_000;
const HELD_BYTES = 64 * 1024 * 1024;
/** The scans of a turn of the event loop; more room is made when it is too little. */
const TURN_BYTES = 256 * 1024;
/** How often a disk that takes nothing is tried again. */
const RETRY_MS = 1_000;
const OFFER_BYTES = 512 * 1024;
const OFFER_MS = 15_000;

/**
 * Opens the spool. Nothing is added to what an earlier process left, so what a crash left at its end stays at its end.
 * Survives the end of the process, not of the machine: that would take an fsync every turn, at half the speed.
 */
export function openSpool({ folder, logger, offer }: SpoolOptions): Spool {
  let last = '';
  let open: (Segment & { fd: number; size: number; since: number }) | undefined;
  /** The frames of this turn, one after the other in the first `filled` bytes, and whom to tell that they are kept. */
  let turn = Buffer.allocUnsafeSlow(TURN_BYTES);
  let filled = 0;
  let waiting: (() => void)[] = [];
  let held: Held[] = [];
  let heldBytes = 0;
  let offered: { readonly count: number; readonly at: number } | undefined;
  let failing: string | undefined;
  let failures = 0;
  let lost = 0;

  function openSegment() {
    const segment = newSegment(folder, last);
    last = segment.name;
    open = { ...segment, fd: openSync(segment.path, 'ax', 0o600), size: 0, since: Date.now() };
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

  function hold(bytes: Buffer, payloads: number): void {
    if (heldBytes + bytes.length > HELD_BYTES) {
      lost += payloads;
      logger.error({ lost }, 'scans were lost: neither disk nor memory takes them');
      return;
    }
    held.push({ frames: Buffer.from(bytes), payloads });
    heldBytes += bytes.length;
  }

  /** Writes what is held, oldest first, and then `bytes`; false when the disk doesn't take it. */
  function reachesDisk(bytes: Buffer): boolean {
    try {
      if (failing !== undefined) mkdirSync(folder, { recursive: true });
      for (const { frames } of held) write(frames);
      if (bytes.length > 0) write(bytes);
    } catch (error) {
      failed(error);
      return false;
    }
    held = [];
    heldBytes = 0;
    offered = undefined;
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
      // Whoever opens the folder next does it.
    }
  }

  function flush(): void {
    const answers = waiting;
    waiting = [];
    const bytes = turn.subarray(0, filled);
    filled = 0;
    if (failing !== undefined || !reachesDisk(bytes)) hold(bytes, answers.length);
    for (const answer of answers) answer();
  }

  function offerOldest(): void {
    if (held.length === 0 || (offered && Date.now() - offered.at < OFFER_MS)) return;
    let [count, size] = [0, 0];
    while (count < held.length && size < OFFER_BYTES) size += held[count++]?.frames.length ?? 0;
    const mine = { count, at: Date.now() };
    offered = mine;
    const frames = Buffer.concat(held.slice(0, count).map((each) => each.frames));
    offer(frames, () => {
      // The disk may have taken them meanwhile, or they were offered again.
      if (offered !== mine) return;
      offered = undefined;
      held = held.slice(count);
      heldBytes -= frames.length;
      offerOldest();
    });
  }

  function tend(): void {
    if (failing !== undefined) {
      if (!reachesDisk(Buffer.alloc(0))) offerOldest();
    } else if (open && Date.now() - open.since >= SEGMENT_MS) {
      try {
        seal();
      } catch (error) {
        failed(error);
      }
    }
  }

  try {
    mkdirSync(folder, { recursive: true });
    sealWhatIsLeft(folder);
    last = segmentsIn(folder).at(-1)?.name ?? '';
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
    status: () => ({ failing, failures, held: heldBytes, lost }),
    async close(graceMs) {
      if (waiting.length > 0) flush();
      for (const deadline = Date.now() + graceMs; held.length > 0 && Date.now() < deadline; ) {
        tend();
        await new Promise((resolve) => setTimeout(resolve, Math.min(100, graceMs)));
      }
      clearInterval(tending);
      if (held.length > 0 && !reachesDisk(Buffer.alloc(0))) {
        logger.error({ bytes: heldBytes }, 'scans were lost: the process ends and nothing takes them');
      }
      try {
        seal();
      } catch (error) {
        failed(error);
      }
    },
  };
}
