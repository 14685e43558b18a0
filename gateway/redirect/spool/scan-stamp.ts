import { randomBytes } from 'node:crypto';

/** Tag and length of the field `stamp`, which is the last of a scan, and its bytes. */
const [TAG, LENGTH] = [0x62, 16];
export const STAMP_BYTES = 2 + LENGTH;

const DAY_MS = 86_400_000;

/** Writes the stamp of a scan that is answered at `now` (ms since 1970) into `bytes` from `at` on. */
export type Stamp = (bytes: Buffer, at: number, now: number) => void;

/** What a stamp says. */
export interface Stamped {
  /** 16 hexadecimal digits. */
  readonly run: string;
  readonly answered: number;
  readonly lost: number;
}

/**
 * Numbers the scans that this process answers, for the ledger: who has the last of a day knows how many there were,
 * though the process was killed right after it. A day begins a new run, so that no clock makes a number come twice.
 * `lost`: how many scans could not be kept since the start.
 */
export function stampScans(lost: () => number): Stamp {
  let run = randomBytes(8);
  let [day, answered, lostBefore] = [0, 0, 0];
  return (bytes, at, now) => {
    const today = Math.floor(now / DAY_MS);
    if (today !== day) {
      run = randomBytes(8);
      [day, answered, lostBefore] = [today, 0, lost()];
    }
    answered++;
    bytes[at] = TAG;
    bytes[at + 1] = LENGTH;
    run.copy(bytes, at + 2);
    bytes.writeUInt32BE(answered, at + 10);
    bytes.writeUInt32BE(lost() - lostBefore, at + 14);
  };
}

/** The stamp of a scan; undefined where it has none. */
export function stampOf(message: Uint8Array): Stamped | undefined {
  const at = message.length - STAMP_BYTES;
  if (at < 0 || message[at] !== TAG || message[at + 1] !== LENGTH) return undefined;
  const bytes = Buffer.from(message.buffer, message.byteOffset + at + 2, LENGTH);
  return { run: bytes.toString('hex', 0, 8), answered: bytes.readUInt32BE(8), lost: bytes.readUInt32BE(12) };
}
