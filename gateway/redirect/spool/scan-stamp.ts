import { randomBytes } from 'node:crypto';
import { DAY_MS } from '../../../common/runtime/durations.ts';
import { STAMP } from './scan-layout.ts';

const LENGTH = 16;

/** The size of the last field of a scan, with its tag and length. */
export const STAMP_BYTES = 2 + LENGTH;

/** Writes the stamp of a scan that is answered at `now` (ms since 1970) into `bytes` at offset `at`. */
export type Stamp = (bytes: Buffer, at: number, now: number) => void;

/** The content of a stamp. */
export interface Stamped {
  /** 16 hexadecimal digits. */
  readonly run: string;
  readonly answered: number;
  readonly lost: number;
}

/**
 * Numbers the scans that this process answers, for the ledger: the last scan of a day contains their number, even if
 * the process was killed right after it. Each day begins a new run, so that no number repeats, whatever the clock does.
 * `lost`: returns the number of scans lost since the start.
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
    bytes[at] = STAMP;
    bytes[at + 1] = LENGTH;
    run.copy(bytes, at + 2);
    bytes.writeUInt32BE(answered, at + 10);
    bytes.writeUInt32BE(lost() - lostBefore, at + 14);
  };
}

/** The stamp of a serialized scan; undefined if it has none. */
export function stampOf(message: Uint8Array): Stamped | undefined {
  const at = message.length - STAMP_BYTES;
  if (at < 0 || message[at] !== STAMP || message[at + 1] !== LENGTH) return undefined;
  const bytes = Buffer.from(message.buffer, message.byteOffset + at + 2, LENGTH);
  return { run: bytes.toString('hex', 0, 8), answered: bytes.readUInt32BE(8), lost: bytes.readUInt32BE(12) };
}
