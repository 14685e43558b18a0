import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromBinary } from '@bufbuild/protobuf';
import type { Logger } from 'pino';
import { GATEWAY_FIGURES } from '../../../common/contract/gateway-figures.ts';
import type { Log, NewRecord } from '../../../common/log/log.ts';
import { SCANS } from '../../../common/log/topics.ts';
import { ScanSchema } from '../../../proto/gen/signpost/scans/v1/scan_pb.ts';
import { codeIdIn } from '../answer/scan-message.ts';
import { forceSpool } from './force-spool.ts';
import { readFrames } from './frames.ts';
import { type Batch, readSpool, type SpoolReader } from './read-spool.ts';
import { spoolsIn } from './segments.ts';
import { countShipped } from './shipped-figures.ts';

/** Carries the spools to the log. */
export interface Shipper {
  status(): ShipperStatus;
  /** Publishes frames that are in no spool; rejects while the log is away. */
  publish(frames: Buffer): Promise<void>;
  /** Ships what it can within `graceMs` and stops; the rest stays on disk. */
  stop(graceMs: number): Promise<void>;
}

export interface ShipperStatus {
  /** Scans that the log took since the start. */
  readonly shipped: number;
  /** Bytes that wait on disk. */
  readonly depth: number;
  /** Whether the log refused what it was given last, or a spool can't be read. */
  readonly failing: boolean;
}

/** How often a spool is asked that had little or nothing: what a lone scan waits for, and what spares the log calls. */
const POLL_MS = 25;
const LITTLE = 1_000;
/** How often it looks for spools of new workers, and for those that were removed. */
const LOOK_MS = 500;
/** Scans that wait on disk for the log are forced to it after one to two times this. */
const FORCE_MS = 500;
/** Pauses between attempts while the log is away: each twice the one before it. */
const FIRST_RETRY_MS = 250;
const MOST_RETRY_MS = 5_000;

export interface ShippingOptions {
  /** Holds a spool for each worker, also for those that there are no more. */
  readonly folder: string;
  readonly log: Pick<Log, 'publish'>;
  readonly logger: Logger;
  /** Takes a segment out of its spool that the log has; by default it is deleted. */
  take?(path: string): void;
  /** Whether scans are forced to disk that the log has, too: they are kept, for the log may lose them. */
  readonly forceAll?: boolean;
}

interface ShippedSpool {
  readonly reader: SpoolReader;
  /** Forces to disk what has waited since the last call. */
  force(): Promise<void>;
  /** Resolves when no more of it is shipped. */
  running: Promise<void> | undefined;
}

/**
 * Publishes the oldest scans first and forgets them once the log has them; a crash in between repeats them, and their
 * ids decide. While the log is away it tries for ever.
 */
export function shipScans({ folder, log, logger, take, forceAll = false }: ShippingOptions): Shipper {
  const stopping = new AbortController();
  const { signal } = stopping;
  const count = countShipped();
  const spools = new Map<string, ShippedSpool>();
  const unreadable = new Set<SpoolReader>();
  let deadline = Number.POSITIVE_INFINITY;
  let shipped = 0;
  let failures = 0;
  let forcing = true;

  async function publish(payloads: readonly Uint8Array[]): Promise<void> {
    const shipment = count(payloads);
    const records = recordsOf(payloads, shipment.figures);
    try {
      await log.publish(SCANS.name, records);
    } catch (error) {
      shipment.failed();
      throw error;
    }
    shipped += records.length;
    if (failures > 0) logger.info({ failures }, 'scans reach the log again');
    failures = 0;
  }

  function nextOf(reader: SpoolReader): Batch | undefined {
    try {
      const batch = reader.next();
      if (unreadable.delete(reader)) logger.info('a spool can be read again');
      return batch;
    } catch (error) {
      if (!unreadable.has(reader)) logger.error({ err: error }, 'a spool can’t be read; its scans wait on disk');
      unreadable.add(reader);
      return undefined;
    }
  }

  async function ship(spool: string, reader: SpoolReader): Promise<void> {
    while (performance.now() < deadline && spools.get(spool)?.reader === reader) {
      try {
        const batch = nextOf(reader);
        if (batch) {
          await publish(batch.payloads);
          batch.forget();
        } else if (signal.aborted) {
          return;
        }
        if (!batch || batch.payloads.length < LITTLE) await pause(POLL_MS, signal);
      } catch (error) {
        if (failures === 0) logger.warn({ err: error }, 'scans do not reach the log; they wait on disk');
        failures++;
        await pause(Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), MOST_RETRY_MS), signal);
        // Asked to stop, it goes on until the deadline without a pause to break off.
        if (signal.aborted) await sleep(FIRST_RETRY_MS);
      }
    }
  }

  function look(): void {
    const there = new Set(spoolsIn(folder));
    for (const [spool, { reader }] of spools) {
      if (there.has(spool) || existsSync(join(folder, spool))) continue;
      spools.delete(spool);
      unreadable.delete(reader);
    }
    for (const spool of there) {
      if (spools.has(spool)) continue;
      const path = join(folder, spool);
      const reader = readSpool(path, logger, take);
      const force = forceSpool(path, forceAll ? () => false : reader.isForgotten);
      const shipped: ShippedSpool = { reader, force, running: undefined };
      spools.set(spool, shipped);
      shipped.running = ship(spool, reader);
    }
  }

  async function force(): Promise<void> {
    while (!signal.aborted) {
      await pause(FORCE_MS, signal);
      try {
        for (const spool of spools.values()) await spool.force();
        if (!forcing) logger.info('scans are forced to disk again');
        forcing = true;
      } catch (error) {
        if (forcing)
          logger.error({ err: error }, 'scans can’t be forced to disk; a power cut would cost those that wait');
        forcing = false;
      }
    }
  }

  look();
  force();
  const looking = setInterval(look, LOOK_MS).unref();

  return {
    status() {
      const depth = [...spools.values()].reduce((sum, { reader }) => sum + reader.depth(), 0);
      return { shipped, depth, failing: failures > 0 || unreadable.size > 0 };
    },
    publish: (frames) => publish(readFrames(frames, 'nothing').payloads),
    async stop(graceMs) {
      clearInterval(looking);
      look();
      deadline = performance.now() + graceMs;
      stopping.abort();
      const all = Promise.all([...spools.values()].map(({ running }) => running));
      await Promise.race([all, sleep(graceMs, undefined, { ref: false })]);
    },
  };
}

/** Records of scans, the first of which tells the ledger `figures`. */
export function recordsOf(payloads: readonly Uint8Array[], figures: string): NewRecord[] {
  const headers = { [GATEWAY_FIGURES]: figures };
  return payloads.map((value, index) => ({ key: keyOf(value), value, ...(index === 0 && { headers }) }));
}

/** What is no scan goes on all the same, to the recorder's dead letters: here it would hold up all behind it. */
function keyOf(value: Uint8Array): string {
  try {
    return codeIdIn(value) ?? fromBinary(ScanSchema, value).codeId;
  } catch {
    return '';
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return sleep(ms, undefined, { signal }).catch(() => undefined);
}
