import type { Logger } from 'pino';

/** Frames that the disk does not take, in memory, until the disk takes them or somebody else has. */
export interface HeldFrames {
  /** Copies frames of so many payloads; where there is no room left they are lost. */
  hold(frames: Buffer, payloads: number): void;
  /** All of them, oldest first. */
  all(): readonly Buffer[];
  /** They are all on disk. */
  clear(): void;
  /** Offers the oldest ones to whoever may have a way for them, if none are on their way. */
  offer(): void;
  readonly bytes: number;
  /** Payloads that there was no room for. */
  readonly lost: number;
}

/**
 * Somebody who may have a way for frames that the disk does not take; `taken` is called once they are safe. Nothing else
 * is offered before, until `OFFER_MS` are over.
 */
export type Offer = (frames: Buffer, taken: () => void) => void;

const MOST_BYTES = 64 * 1024 * 1024;
const OFFER_BYTES = 512 * 1024;
const OFFER_MS = 15_000;
/** The least time from one line in the log that scans are lost to the next, in ms: it happens in every turn. */
const TELL_MS = 10_000;

export function holdFrames(offer: Offer, logger: Logger): HeldFrames {
  let held: Buffer[] = [];
  let bytes = 0;
  let lost = 0;
  let told = { lost: 0, at: Number.NEGATIVE_INFINITY };
  let offered: { readonly count: number; readonly at: number } | undefined;

  function tellLost(pauseMs: number): void {
    if (told.lost === lost || performance.now() - told.at < pauseMs) return;
    told = { lost, at: performance.now() };
    logger.error({ lost }, 'scans were lost: neither disk nor memory takes them');
  }

  function offerOldest(): void {
    tellLost(TELL_MS);
    if (held.length === 0 || (offered && performance.now() - offered.at < OFFER_MS)) return;
    let [count, size] = [0, 0];
    while (count < held.length && size < OFFER_BYTES) size += held[count++]?.length ?? 0;
    const mine = { count, at: performance.now() };
    offered = mine;
    offer(Buffer.concat(held.slice(0, count)), () => {
      // The disk may have taken them meanwhile, or they were offered again.
      if (offered !== mine) return;
      offered = undefined;
      held = held.slice(count);
      bytes -= size;
      offerOldest();
    });
  }

  return {
    hold(frames, payloads) {
      if (bytes + frames.length > MOST_BYTES) {
        lost += payloads;
        tellLost(TELL_MS);
        return;
      }
      held.push(Buffer.from(frames));
      bytes += frames.length;
    },
    all: () => held,
    clear() {
      tellLost(0);
      held = [];
      bytes = 0;
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
