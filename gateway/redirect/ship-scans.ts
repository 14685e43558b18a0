import { setTimeout as sleep } from 'node:timers/promises';
import { fromBinary } from '@bufbuild/protobuf';
import type { Logger } from 'pino';
import { ScanSchema } from '../../proto/gen/signpost/scans/v1/scan_pb.ts';
import type { Log } from '../../src/events/log/log.ts';
import { SCANS } from '../../src/events/log/topics.ts';
import { codeIdIn } from './scan-message.ts';
import type { Spool } from './spool.ts';

/** Carries the spool to the log. */
export interface Shipper {
  status(): ShipperStatus;
  /** Ships what it can within `graceMs` and stops; the rest stays on disk. */
  stop(graceMs: number): Promise<void>;
}

export interface ShipperStatus {
  /** Scans that the log took since the start. */
  readonly shipped: number;
  /** Whether the last attempt failed. */
  readonly failing: boolean;
}

/** How long scans are collected once there is one: what a lone scan waits for, and what spares the log a call each. */
const COLLECT_MS = 20;
/** How often the spool is asked although nothing arrived, so that it can tidy up. */
const IDLE_MS = 1_000;
/** Pauses between attempts while the log is away: each twice the one before it. */
const FIRST_RETRY_MS = 250;
const MOST_RETRY_MS = 5_000;

/**
 * Publishes the oldest scans first and forgets them once the log has them; a crash in between repeats them, and their
 * ids decide. While the log is away it tries for ever.
 */
export function shipScans({ spool, log, logger }: { spool: Spool; log: Log; logger: Logger }): Shipper {
  const stopping = new AbortController();
  const { signal } = stopping;
  let deadline = Number.POSITIVE_INFINITY;
  let shipped = 0;
  let failures = 0;

  /** Gives false when there was nothing to ship. */
  async function ship(): Promise<boolean> {
    const batch = spool.next();
    if (!batch) return false;
    const records = batch.payloads.map((value) => ({
      key: codeIdIn(value) ?? fromBinary(ScanSchema, value).codeId,
      value,
    }));
    await log.publish(SCANS.name, records);
    batch.forget();
    shipped += records.length;
    if (failures > 0) logger.info({ failures }, 'scans reach the log again');
    failures = 0;
    return true;
  }

  const running = (async () => {
    while (Date.now() < deadline) {
      const arrival = spool.arrival();
      try {
        if (await ship()) continue;
        if (signal.aborted) return;
        await Promise.race([arrival, pause(IDLE_MS, signal)]);
        await pause(COLLECT_MS, signal);
      } catch (error) {
        if (failures === 0) logger.warn({ err: error }, 'scans do not reach the log; they wait on disk');
        failures++;
        await pause(Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), MOST_RETRY_MS), signal);
        // Asked to stop, it goes on until the deadline without a pause to break off.
        if (signal.aborted) await sleep(FIRST_RETRY_MS);
      }
    }
  })();

  return {
    status: () => ({ shipped, failing: failures > 0 }),
    async stop(graceMs) {
      deadline = Date.now() + graceMs;
      stopping.abort();
      await Promise.race([running, sleep(graceMs, undefined, { ref: false })]);
    },
  };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return sleep(ms, undefined, { signal }).catch(() => undefined);
}
