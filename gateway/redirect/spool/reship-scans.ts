import type { Log } from '../../../common/log/log.ts';
import { SCANS } from '../../../common/log/topics.ts';
import { answeredAt } from '../answer/scan-message.ts';
import { readFrames } from './frames.ts';
import { readFrom } from './read-spool.ts';
import { recordsOf } from './ship-scans.ts';
import { countShipped } from './shipped-figures.ts';
import { shippedSegmentsIn } from './shipped-segments.ts';

/** The result of publishing kept scans again. */
export interface Reshipped {
  readonly segments: number;
  readonly scans: number;
}

/**
 * Publishes again the scans of kept segments that were answered at `since` (ms since 1970) or later; the recorder drops
 * duplicates by their ids. It may run while the gateway does, which only removes segments.
 */
export async function reshipScans({
  folder,
  since,
  log,
}: {
  readonly folder: string;
  readonly since: number;
  readonly log: Pick<Log, 'publish'>;
}): Promise<Reshipped> {
  const count = countShipped();
  let segments = 0;
  let scans = 0;
  for (const { path, written } of shippedSegmentsIn(folder)) {
    if (written < since) continue;
    let found = 0;
    for (const part of partsOf(path)) {
      const wanted = part.filter((payload) => answeredAt(payload) >= since);
      if (wanted.length === 0) continue;
      await log.publish(SCANS.name, recordsOf(wanted, count(wanted).figures));
      found += wanted.length;
    }
    if (found > 0) segments++;
    scans += found;
  }
  return { segments, scans };
}

/** The payloads of a segment, 1 MiB at a time. */
function* partsOf(path: string): Generator<readonly Uint8Array[]> {
  for (let at = 0; ; ) {
    const { bytes, atEnd } = readFrom(path, at);
    const { payloads, read } = readFrames(bytes, atEnd ? 'nothing' : 'more');
    yield payloads;
    at += read;
    if (atEnd || read === 0) return;
  }
}
