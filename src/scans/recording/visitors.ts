import { randomBytes } from 'node:crypto';
import type { Pool } from 'pg';
import { first, promptStatement, run, statement } from '../../../common/postgres/sql.ts';
import { DAY_MS } from '../../../common/runtime/durations.ts';
import { dayOf } from '../days.ts';

/** How long after its day a salt is kept for delayed scans, in ms. Later scans get a visitor of their own. */
const GRACE_MS = 2 * 3_600_000;

/** How many visitors one statement deletes, so that none holds locks for long. */
const DELETE_BATCH = 20_000;

const proposeSalt = promptStatement(
  'scans_propose_salt',
  'insert into visitor_salts (day, salt) values ($1, $2) on conflict do nothing',
);
const deleteSalts = statement('scans_delete_salts', 'delete from visitor_salts where day < $1');

/** Index: primary key, whose first column is the day. */
const deleteVisitors = statement<{ deleted: number }>(
  'scans_delete_past_visitors',
  `with deleted as (
     delete from scan_visitors
     where ctid = any(array(select ctid from scan_visitors where day < $1 limit ${DELETE_BATCH}))
     returning 1
   )
   select count(*)::integer as deleted from deleted`,
);

/** The first day whose salt still exists: visitors of earlier days cannot be recognised. */
export function firstSaltedDay(now: number): string {
  return dayOf(now - GRACE_MS);
}

/**
 * Creates the missing salts of today and tomorrow: gateways read both ahead, so that midnight passes even while
 * Postgres is unavailable.
 */
export async function makeSalts(pool: Pool, now: number): Promise<void> {
  for (const day of [dayOf(now), dayOf(now + DAY_MS)]) await run(pool, proposeSalt, [day, randomBytes(32)]);
}

/** Destroys the salts of past days and deletes those days' visitors: no visitor can be recognised any more. */
export async function destroySalts(pool: Pool, now: number): Promise<void> {
  const oldest = firstSaltedDay(now);
  await run(pool, deleteSalts, [oldest]);
  // A deleted row stays in the table's file, and one row a day does not trigger autovacuum: this writes a new file. If
  // another session is reading the table, it is skipped until the next hour.
  await pool.query('vacuum (full, skip_locked) visitor_salts');
  let deleted: number | undefined;
  do deleted = (await first(pool, deleteVisitors, [oldest]))?.deleted;
  while (deleted === DELETE_BATCH);
}

/**
 * The visitor of a scan that has none, or arrived after its day's salt was destroyed: it cannot be matched with other
 * scans, so it counts as a visitor of its own, taken from the random end of the scan's id (a UUID).
 */
export function unmatchedVisitor(scanId: string): bigint {
  return BigInt.asIntN(64, BigInt(`0x${scanId.slice(-17, -13)}${scanId.slice(-12)}`));
}
