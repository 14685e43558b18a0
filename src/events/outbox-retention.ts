import type { Pool } from 'pg';
import type { Logger } from 'pino';
import type { Subscription } from '../../common/log/log.ts';
import { first, promptQuery, statement, transaction } from '../../common/postgres/sql.ts';
import { isLockTimeout } from '../../common/postgres/unavailable.ts';
import { periodically } from '../../common/runtime/periodically.ts';

/** How rows are assigned to slots; see migration 0015. */
const SLOTS = 15;
const SLOT_HOURS = 6;
/** Maximum retention: one slot is being filled, one is next, and one may be about to be emptied. */
export const MAX_RETENTION_HOURS = (SLOTS - 3) * SLOT_HOURS;

const INTERVAL_MS = 60_000;
/** How long emptying waits for the slot's lock, while others queue behind it, in ms. */
const LOCK_MS = 100;

const clock = statement<{ hours: number }>(
  'events_outbox_clock',
  'select extract(epoch from clock_timestamp())::float8 / 3600 as hours',
);

/** The slots whose newest row is older than `retentionHours`. `hours`: since 1970. */
export function outdatedSlots(hours: number, retentionHours: number): number[] {
  const kept = new Set<number>();
  const newest = Math.floor(hours / SLOT_HOURS) + 1;
  for (let period = Math.floor((hours - retentionHours) / SLOT_HOURS); period <= newest; period++) {
    kept.add(period % SLOTS);
  }
  return Array.from({ length: SLOTS }, (_, slot) => slot).filter((slot) => !kept.has(slot));
}

/**
 * Empties the slots of the outbox whose rows are older than the retention, up to six hours late. A slot with rows that
 * are not published yet, or that a backup is reading, is tried again a minute later. Any number of processes may do
 * this.
 */
export async function emptyOutdatedSlots(pool: Pool, retentionHours: number): Promise<void> {
  const now = await first(pool, clock);
  for (const slot of outdatedSlots(now?.hours ?? 0, retentionHours)) {
    const name = `outbox_${slot}`;
    // First check without a lock: nearly always the slot is empty already.
    const { rowCount } = await pool.query(`select from ${name} limit 1`);
    if (rowCount !== 0) await empty(pool, name);
  }
}

async function empty(pool: Pool, name: string): Promise<void> {
  try {
    await transaction(pool, async (tx) => {
      await tx.query(promptQuery(`set local lock_timeout = ${LOCK_MS}; lock table ${name}`));
      // Index: outbox_id of the slot, its maximum and one range per hole.
      const waiting = await tx.query(
        `select from outbox_position where (select max(id) from ${name}) > last or exists (
           select from unnest(holes) as hole where (select min(id) from ${name} where id >= lower(hole)) < upper(hole)
         )`,
      );
      if (waiting.rowCount === 0) await tx.query(`truncate ${name}`);
    });
  } catch (error) {
    if (!isLockTimeout(error)) throw error;
  }
}

/** Empties outdated slots immediately and then every minute, until stopped. */
export function startOutboxRetention(pool: Pool, retentionHours: number, logger: Logger): Subscription {
  return periodically(INTERVAL_MS, 'deleting old rows from the outbox', logger, () =>
    emptyOutdatedSlots(pool, retentionHours),
  );
}
