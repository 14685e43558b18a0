import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../../../common/log/log.ts';
import { SCANS } from '../../../common/log/topics.ts';
import { OperatorError } from '../../../common/runtime/operator-error.ts';
import { readFrames } from './frames.ts';
import { answeredAt } from './scan-layout.ts';
import { sealedPath, segmentsIn, spoolsIn } from './segments.ts';
import { recordsOf } from './ship-scans.ts';
import { countShipped } from './shipped-figures.ts';
import { shippedSegmentsIn } from './shipped-segments.ts';

/** The result of publishing scans again. */
export interface Reshipped {
  readonly segments: number;
  readonly scans: number;
}

export interface ReshipOptions {
  /** Contains the spools, whose latest scans may have been published already. */
  readonly spools: string;
  /** Contains the kept segments. */
  readonly shipped: string;
  /** The time of the oldest scans to publish, in ms since 1970. */
  readonly since: number;
  readonly log: Pick<Log, 'publish'>;
}

/** How much of a segment is published at once, in bytes. */
const PART_BYTES = 1024 * 1024;

/**
 * Publishes again all scans on this disk that were answered at `since` or later; the recorder drops duplicates by their
 * ids. It may run while the gateway does. Rejects if a segment or a folder could not be read, after it has published
 * all others.
 */
export async function reshipScans({ spools, shipped, since, log }: ReshipOptions): Promise<Reshipped> {
  const count = countShipped();
  let segments = 0;
  let scans = 0;
  const unreadable: Error[] = [];
  for (const { bytes, sealed } of allSegments(spools, shipped, since, unreadable)) {
    let found = 0;
    for (const part of partsOf(bytes, sealed)) {
      const wanted = part.filter((payload) => answeredAt(payload) >= since);
      if (wanted.length === 0) continue;
      await log.publish(SCANS.name, recordsOf(wanted, count(wanted).figures));
      found += wanted.length;
    }
    if (found > 0) segments++;
    scans += found;
  }
  if (unreadable.length > 0) {
    const reasons = unreadable.map(({ message }) => message).join('; ');
    throw new OperatorError(
      `${scans} scans of ${segments} segments were published again, but not everything could be read: ${reasons}.`,
    );
  }
  return { segments, scans };
}

interface SegmentBytes {
  readonly bytes: Buffer;
  readonly sealed: boolean;
}

/**
 * The segments that were written at `since` or later. First those in the spools, because the gateway may meanwhile seal
 * one, which renames it, and then move it to the kept ones. Adds errors to `unreadable`.
 */
function* allSegments(spools: string, shipped: string, since: number, unreadable: Error[]): Generator<SegmentBytes> {
  /** The result of reading a folder or a segment; undefined if that fails. */
  const attempt = <Result>(read: () => Result): Result | undefined => {
    try {
      return read();
    } catch (error) {
      unreadable.push(error as Error);
      return undefined;
    }
  };
  for (const spool of spoolsIn(spools)) {
    for (const segment of attempt(() => segmentsIn(join(spools, spool))) ?? []) {
      const { path, sealed } = segment;
      const read = attempt(() => readSegment(path, sealed) ?? readSegment(sealedPath(segment), true));
      if (read) yield read;
    }
  }
  for (const { path, written } of attempt(() => shippedSegmentsIn(shipped)) ?? []) {
    const read = written >= since && attempt(() => readSegment(path, true));
    if (read) yield read;
  }
}

/** Reads a segment; undefined if there is none at this path any more. Errors name the path. */
function readSegment(path: string, sealed: boolean): SegmentBytes | undefined {
  try {
    return { bytes: readFileSync(path), sealed };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    // Reading a folder as a file fails without its path.
    throw message.includes(path) ? error : new Error(`${message} '${path}'`, { cause: error });
  }
}

/** The payloads of a segment, in parts. */
function* partsOf(bytes: Buffer, sealed: boolean): Generator<readonly Uint8Array[]> {
  for (let at = 0; ; ) {
    const end = at + PART_BYTES;
    const next = end < bytes.length ? 'more' : sealed ? 'nothing' : 'open';
    const { payloads, read } = readFrames(bytes.subarray(at, end), next);
    if (read === 0) return;
    yield payloads;
    at += read;
  }
}
