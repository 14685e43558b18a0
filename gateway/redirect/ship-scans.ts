import { setTimeout as sleep } from 'node:timers/promises';
import { fromBinary } from '@bufbuild/protobuf';
import type { Logger } from 'pino';
import { ScanSchema } from '../../proto/gen/signpost/scans/v1/scan_pb.ts';
import type { Log } from '../../src/events/log/log.ts';
import { SCANS } from '../../src/events/log/topics.ts';
import type { Spool } from './spool.ts';

/** Carries the spool to the log. */
export interface Shipper {
  status(): { readonly shipped: number; readonly failing: boolean };
  /** Ships what it can within `graceMs` and stops; the rest stays on disk. */
  stop(graceMs: number): Promise<void>;
}

const IDLE_MS = 25;
const RETRY_MS = 1_000;

/**
 * Publishes the oldest scans first and forgets them once the log has them; a crash in between repeats them, and their
 * ids decide. While the log is away it tries again every second.
 */
export function shipScans({ spool, log, logger }: { spool: Spool; log: Log; logger: Logger }): Shipper {
  const stopping = new AbortController();
  const idle = (ms: number) => sleep(ms, undefined, { signal: stopping.signal }).catch(() => undefined);
  let deadline = Number.POSITIVE_INFINITY;
  let shipped = 0;
  let failing = false;

  async function ship(): Promise<boolean> {
    const payloads = spool.next();
    if (payloads.length === 0) return false;
    const records = payloads.map((value) => ({ key: fromBinary(ScanSchema, value).codeId, value }));
    await log.publish(SCANS.name, records);
    spool.forget();
    shipped += records.length;
    return true;
  }

  const running = (async () => {
    while (Date.now() < deadline) {
      try {
        const more = await ship();
        if (failing) logger.info('scans reach the log again');
        failing = false;
        if (!more && stopping.signal.aborted) return;
        if (!more) await idle(IDLE_MS);
      } catch (error) {
        if (!failing) logger.warn({ err: error }, 'scans do not reach the log; they wait on disk');
        failing = true;
        if (stopping.signal.aborted) return;
        await idle(RETRY_MS);
      }
    }
  })();

  return {
    status: () => ({ shipped, failing }),
    async stop(graceMs) {
      deadline = Date.now() + graceMs;
      stopping.abort();
      await Promise.race([running, sleep(graceMs, undefined, { ref: false })]);
    },
  };
}
