import type { Logger } from 'pino';

/** Frames kept in memory while the disk can't be written, until the disk or the log has them. */
export interface HeldFrames {
  /** Copies frames that contain `payloads` payloads; they are lost if the memory limit is reached. */
  hold(frames: Buffer, payloads: number): void;
  /** All of them, oldest first. */
  all(): readonly Buffer[];
  /** Drops the oldest `count`, once they are on disk. */
  drop(count: number): void;
  /** Offers the oldest ones to the log, unless an offer is pending. */
  offer(): void;
  readonly bytes: number;
  /** The number of payloads lost because the memory limit was reached. */
  readonly lost: number;
}

/**
 * Offers frames that are not on disk for publishing; `accepted` is called once the log has them. The next offer is made
 * after that, or after `OFFER_MS`.
 */
export type Offer = (frames: Buffer, accepted: () => void) => void;

const MAX_BYTES = 64 * 1024 * 1024;
const OFFER_BYTES = 512 * 1024;
const OFFER_MS = 15_000;
/** The minimum interval between log lines about lost scans, in ms: scans may be lost in every event loop iteration. */
const LOG_MS = 10_000;

export function holdFrames(offer: Offer, logger: Logger): HeldFrames {
  let held: Buffer[] = [];
  let bytes = 0;
  let lost = 0;
  let logged = { lost: 0, at: Number.NEGATIVE_INFINITY };
  let offered: { readonly count: number; readonly at: number } | undefined;

  function logLost(intervalMs: number): void {
    if (logged.lost === lost || performance.now() - logged.at < intervalMs) return;
    logged = { lost, at: performance.now() };
    logger.error({ lost }, 'scans were lost: the disk can’t be written and memory is full');
  }

  function offerOldest(): void {
    logLost(LOG_MS);
    if (held.length === 0 || (offered && performance.now() - offered.at < OFFER_MS)) return;
    let [count, size] = [0, 0];
    while (count < held.length && size < OFFER_BYTES) size += held[count++]?.length ?? 0;
    const mine = { count, at: performance.now() };
    offered = mine;
    offer(Buffer.concat(held.slice(0, count)), () => {
      // They may be on disk meanwhile, or have been offered again.
      if (offered !== mine) return;
      offered = undefined;
      held = held.slice(count);
      bytes -= size;
      offerOldest();
    });
  }

  return {
    hold(frames, payloads) {
      if (bytes + frames.length > MAX_BYTES) {
        lost += payloads;
        logLost(LOG_MS);
        return;
      }
      held.push(Buffer.from(frames));
      bytes += frames.length;
    },
    all: () => held,
    drop(count) {
      if (count === held.length) logLost(0);
      for (const { length } of held.slice(0, count)) bytes -= length;
      held = held.slice(count);
      offered = undefined;
    },
    offer: offerOldest,
    get bytes() {
      return bytes;
    },
    get lost() {
      return lost;
    },
  };
}
