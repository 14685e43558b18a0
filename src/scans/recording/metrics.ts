import { metrics } from '@opentelemetry/api';
import type { Log } from '../../../common/log/log.ts';
import type { Database } from '../../db/database.ts';
import { type DayEntry, waitingRecords } from '../ledger/ledger.ts';

/**
 * Returns a function that counts records by outcome in the metric `signpost.scans`, attribute
 * `signpost.scan.stage`. Call it once the ledger entry is committed.
 */
export function scanStageCounter(): (days: readonly DayEntry[]) => void {
  const scans = metrics.getMeter('signpost.recorder').createCounter('signpost.scans', {
    unit: '{scan}',
    description: 'Scans by how far they got; the ledger adds up the same figures by day',
  });
  // Prometheus counts an increase only of series that exist.
  for (const stage of ['recorded', 'duplicate', 'dead_lettered']) scans.add(0, { 'signpost.scan.stage': stage });
  return (days) => {
    for (const { recorded, duplicates, deadLettered } of days) {
      if (recorded > 0) scans.add(recorded, { 'signpost.scan.stage': 'recorded' });
      if (duplicates > 0) scans.add(duplicates, { 'signpost.scan.stage': 'duplicate' });
      if (deadLettered > 0) scans.add(deadLettered, { 'signpost.scan.stage': 'dead_lettered' });
    }
  };
}

/** Reports the records that no recorder has processed yet as `signpost.scans.waiting`, over all recorders. */
export function observeWaitingRecords({ log, database: { pool } }: { log: Log; database: Database }): { stop(): void } {
  const waiting = metrics.getMeter('signpost.recorder').createObservableGauge('signpost.scans.waiting', {
    unit: '{record}',
    description: 'Records of the topic of scans that no recorder has processed yet',
  });
  const observe: Parameters<typeof waiting.addCallback>[0] = async (result) => {
    result.observe(await waitingRecords(pool, log));
  };
  waiting.addCallback(observe);
  return { stop: () => waiting.removeCallback(observe) };
}
