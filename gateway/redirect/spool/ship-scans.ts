import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromBinary } from '@bufbuild/protobuf';
import type { Logger } from 'pino';
import { GATEWAY_FIGURES } from '../../../common/contract/gateway-figures.ts';
import { type Log, type NewRecord, RecordsTooLarge } from '../../../common/log/log.ts';
import { SCANS } from '../../../common/log/topics.ts';
import { pause } from '../../../common/runtime/pause.ts';
import { ScanSchema } from '../../../proto/gen/signpost/scans/v1/scan_pb.ts';
import { onTicks } from '../../clock/ticks.ts';
import { readFrames } from './frames.ts';
import { readSpool, type SpoolReader, type UnpublishedScans } from './read-spool.ts';
import { codeIdIn } from './scan-layout.ts';
import { spoolsIn } from './segments.ts';
import { countShipped } from './shipped-figures.ts';
import { syncSpool } from './sync-spool.ts';
import { type WatchedFolder, watchFolder } from './watch-folder.ts';

/** Publishes the scans in the spools to the log. */
export interface Shipper {
  status(): ShipperStatus;
  /** The number of scans published since the start. */
  shipped(): number;
  /** How long the oldest scan on disk has waited, as `SpoolReader.waitingMs` says; undefined if none waits. */
  waitingMs(): number | undefined;
  /** Publishes frames that are in no spool; rejects while the log is unavailable. */
  publish(frames: Buffer): Promise<void>;
  /** Ships as much as it can within `graceMs` and stops; the rest stays on disk. */
  stop(graceMs: number): Promise<void>;
}

export interface ShipperStatus {
  /** The number of scans published since the start. */
  readonly shipped: number;
  /** The number of bytes waiting on disk. */
  readonly depth: number;
  /** Whether the last attempt to publish failed, or a spool can't be read. */
  readonly failing: boolean;
}

/**
 * The pause in ms after a batch of few or no scans: it delays a lone scan, and limits the number of calls to the log.
 */
const POLL_MS = 25;
const SMALL_BATCH = 1_000;
/**
 * After this many polls without a scan, a spool is watched for writes; `IDLE_POLL_MS`: how often it is polled then, in
 * ms.
 */
const IDLE_POLLS = 40;
const IDLE_POLL_MS = 2_000;
/** How often added and removed spools are detected, in ms. */
const DISCOVER_MS = 500;
/** Scans that wait on disk for the log are synced after one to two times this, in ms. */
const SYNC_MS = 500;
/** Pauses between attempts while the log is unavailable, in ms: each twice the previous one. */
const FIRST_RETRY_MS = 250;
const MAX_RETRY_MS = 5_000;

export interface ShippingOptions {
  /** Contains a spool for each worker, including ended ones. */
  readonly folder: string;
  readonly log: Pick<Log, 'publish'>;
  readonly logger: Logger;
  /** Disposes of a segment that was published; by default it is deleted. */
  take?(path: string): void;
  /** Whether scans are synced to disk that the log has, too: they are kept, for the log may lose them. */
  readonly syncAll?: boolean;
}

interface ShippedSpool {
  readonly reader: SpoolReader;
  /** Syncs to disk what has waited since the last call. */
  sync(): Promise<void>;
  /** Resolves when shipping from it has ended. */
  running: Promise<void> | undefined;
}

/**
 * Publishes the oldest scans first and forgets them once the log has them; a crash in between repeats them, and the
 * recorder drops the duplicates by id. While the log is unavailable it retries for ever.
 */
export function shipScans({ folder, log, logger, take, syncAll = false }: ShippingOptions): Shipper {
  const stopping = new AbortController();
  const { signal } = stopping;
  const count = countShipped();
  const spools = new Map<string, ShippedSpool>();
  const unreadable = new Set<SpoolReader>();
  let deadline = Number.POSITIVE_INFINITY;
  let shipped = 0;
  let failures = 0;
  let isSyncing = false;
  let canSync = true;

  async function publish(payloads: readonly Uint8Array[]): Promise<void> {
    const shipment = count(payloads);
    try {
      await log.publish(SCANS.name, recordsOf(payloads, shipment.figures));
    } catch (error) {
      shipment.failed();
      if (error instanceof RecordsTooLarge) {
        count(payloads.slice(0, error.accepted));
        shipped += error.accepted;
      }
      throw error;
    }
    shipped += payloads.length;
    if (failures > 0) logger.info({ failures }, 'scans are published to the log again');
    failures = 0;
  }

  function nextUnpublished(reader: SpoolReader): UnpublishedScans | undefined {
    try {
      const unpublished = reader.next();
      if (unreadable.delete(reader)) logger.info('a spool can be read again');
      return unpublished;
    } catch (error) {
      if (!unreadable.has(reader)) logger.error({ err: error }, 'a spool can’t be read; its scans wait on disk');
      unreadable.add(reader);
      return undefined;
    }
  }

  async function ship(spool: string, reader: SpoolReader): Promise<void> {
    let emptyPolls = 0;
    /** How many of the next scans the log has, because it has refused one of them as too large. */
    let accepted = 0;
    let watched: WatchedFolder | undefined;
    using _ = { [Symbol.dispose]: () => watched?.[Symbol.dispose]() };
    while (performance.now() < deadline && spools.get(spool)?.reader === reader) {
      try {
        const unpublished = nextUnpublished(reader);
        if (unpublished) {
          await publish(unpublished.payloads.slice(accepted));
          accepted = 0;
          unpublished.forget();
        } else if (signal.aborted) {
          return;
        }
        emptyPolls = unpublished ? 0 : emptyPolls + 1;
        if (emptyPolls < IDLE_POLLS) {
          watched?.[Symbol.dispose]();
          watched = undefined;
          if (!unpublished || unpublished.payloads.length < SMALL_BATCH) await pause(POLL_MS, signal);
        } else if (watched) {
          await watched.changed(signal);
        } else {
          // Polled once more, as something may have been written before the watch began.
          watched = watchFolder(join(folder, spool), IDLE_POLL_MS);
          if (!watched) await pause(POLL_MS, signal);
        }
      } catch (error) {
        if (error instanceof RecordsTooLarge) accepted += error.accepted;
        if (failures === 0) logger.warn({ err: error }, 'scans can’t be published to the log; they wait on disk');
        failures++;
        await pause(Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), MAX_RETRY_MS), signal);
        // While stopping, `pause` returns at once, so this keeps the attempts until the deadline apart.
        if (signal.aborted) await sleep(FIRST_RETRY_MS);
      }
    }
  }

  function discoverSpools(): void {
    const existing = new Set(spoolsIn(folder));
    for (const [spool, { reader }] of spools) {
      if (existing.has(spool) || existsSync(join(folder, spool))) continue;
      spools.delete(spool);
      unreadable.delete(reader);
    }
    for (const spool of existing) {
      if (spools.has(spool)) continue;
      const path = join(folder, spool);
      const reader = readSpool(path, logger, take);
      const sync = syncSpool(path, syncAll ? () => false : reader.isForgotten);
      const added: ShippedSpool = { reader, sync, running: undefined };
      spools.set(spool, added);
      added.running = ship(spool, reader);
    }
  }

  async function sync(): Promise<void> {
    if (isSyncing) return;
    isSyncing = true;
    const errors: unknown[] = [];
    for (const spool of spools.values()) await spool.sync().catch((error: unknown) => errors.push(error));
    isSyncing = false;
    const [error] = errors;
    if (canSync && errors.length > 0)
      logger.error({ err: error }, 'scans can’t be synced to disk; a power cut would lose those that wait');
    if (!canSync && errors.length === 0) logger.info('scans are synced to disk again');
    canSync = errors.length === 0;
  }

  discoverSpools();
  const stopDiscovery = onTicks(DISCOVER_MS, discoverSpools);
  const stopSyncing = onTicks(SYNC_MS, sync);

  return {
    status() {
      const depth = [...spools.values()].reduce((sum, { reader }) => sum + reader.depth(), 0);
      return { shipped, depth, failing: failures > 0 || unreadable.size > 0 };
    },
    shipped: () => shipped,
    waitingMs() {
      const times = [...spools.values()].flatMap(({ reader }) => reader.waitingMs() ?? []);
      return times.length === 0 ? undefined : Math.max(...times);
    },
    publish: (frames) => publish(readFrames(frames, 'nothing').payloads),
    async stop(graceMs) {
      stopDiscovery();
      stopSyncing();
      discoverSpools();
      deadline = performance.now() + graceMs;
      stopping.abort();
      const all = Promise.all([...spools.values()].map(({ running }) => running));
      await Promise.race([all, sleep(graceMs, undefined, { ref: false })]);
    },
  };
}

/** Log records of scans; the first one carries `figures` for the ledger in a header. */
export function recordsOf(payloads: readonly Uint8Array[], figures: string): NewRecord[] {
  const headers = { [GATEWAY_FIGURES]: figures };
  return payloads.map((value, index) => ({ key: keyOf(value), value, ...(index === 0 && { headers }) }));
}

/**
 * An undecodable payload is published too, with an empty key, and becomes a dead letter: here it would block all
 * others.
 */
function keyOf(value: Uint8Array): string {
  try {
    return codeIdIn(value) ?? fromBinary(ScanSchema, value).codeId;
  } catch {
    return '';
  }
}
