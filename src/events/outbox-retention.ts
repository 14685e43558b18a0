import type { Pool } from 'pg';
import { DatabaseError } from 'pg';
import type { Logger } from 'pino';
import type { Subscription } from '../../common/log/log.ts';
import { first, promptQuery, statement, transaction } from '../../common/postgres/sql.ts';
import { LOCK_NOT_AVAILABLE } from '../../common/postgres/unavailable.ts';
import { periodically } from '../../common/runtime/periodically.ts';

/** How rows fall into slots; see migration 0015. */
const SLOTS = 15;
const SLOT_HOURS = 6;
/** The most hours that rows can be kept: one slot is being filled, one is about to be, and one is emptied meanwhile. */
export const MOST_KEPT_HOURS = (SLOTS - 3) * SLOT_HOURS;

const EVERY_MS = 60_000;
/** How long emptying waits for whoever uses the slot, while others wait behind it, in ms. */
const LOCK_MS = 100;

const clock = statement<{ hours: number }>(
  'events_outbox_clock',
  'select extract(epoch from clock_timestamp())::float8 / 3600 as hours',
);

/** The slots whose newest row is older than `keptHours`. `hours`: since 1970. */
export function outdatedSlots(hours: number, keptHours: number): number[] {
  const kept = new Set<number>();
  const newest = Math.floor(hours / SLOT_HOURS) + 1;
  for (let turn = Math.floor((hours - keptHours) / SLOT_HOURS); turn <= newest; turn++) kept.add(turn % SLOTS);
  return Array.from({ length: SLOTS }, (_, slot) => slot).filter((slot) => !kept.has(slot));
}

/**
 * Empties the slots of the outbox whose rows were kept for so many hours, up to six hours late. A slot with rows that
 * wait for the log, or that a backup is reading, is tried again a minute later. Any number of processes may do it.
 */
export async function emptyOutdatedSlots(pool: Pool, keptHours: number): Promise<void> {
  const now = await first(pool, clock);
  for (const slot of outdatedSlots(now?.hours ?? 0, keptHours)) {
    const name = `outbox_${slot}`;
    // First without a lock: nearly always it has been emptied before.
    const { rowCount } = await pool.query(`select from ${name} limit 1`);
    if (rowCount !== 0) await empty(pool, name);
  }
}

async function empty(pool: Pool, name: string): Promise<void> {
  try {
    await transaction(pool, async (tx) => {
      await tx.query(promptQuery(`set local lock_timeout = ${LOCK_MS}; lock table ${name}`));
      // Index: outbox_id of the slot, at its end and once for each hole.
      const waiting = await tx.query(
        `select from outbox_position where (select max(id) from ${name}) > last or exists (
           select from unnest(holes) as hole where (select min(id) from ${name} where id >= lower(hole)) < upper(hole)
         )`,
      );
      if (waiting.rowCount === 0) await tx.query(`truncate ${name}`);
    });
  } catch (error) {
    if (!(error instanceof DatabaseError && error.code === LOCK_NOT_AVAILABLE)) throw error;
  }
}

/** Empties outdated slots at once and then every minute, until it is stopped. */
export function startOutboxRetention(pool: Pool, keptHours: number, logger: Logger): Subscription {
  return periodically(EVERY_MS, 'emptying the outbox of old rows', logger, () => emptyOutdatedSlots(pool, keptHours));
}
