import type { Pool } from 'pg';
import { LOCKS } from '../db/locks.ts';
import { transaction } from '../db/sql.ts';
import { dayOf } from './days.ts';

/** The UTC month of a time in ms since 1970, `YYYY-MM`. */
export function monthOf(time: number): string {
  return dayOf(time).slice(0, 7);
}

/** The month after this one. */
export function monthAfter(month: string): string {
  const start = new Date(`${month}-01T00:00:00Z`);
  return monthOf(start.setUTCMonth(start.getUTCMonth() + 1));
}

/**
 * Makes the partitions of `scans` for these months, where there are none. The table is made on its own and then
 * attached, which, unlike `create table … partition of`, lets others go on reading and writing `scans`.
 */
export async function ensureMonths(pool: Pool, months: readonly string[]): Promise<void> {
  for (const month of months) {
    const name = `scans_${month.replace('-', '_')}`;
    await transaction(pool, async (tx) => {
      await tx.query('select pg_advisory_xact_lock($1)', [LOCKS.scanMonths]);
      const { rows } = await tx.query<{ attached: boolean }>(
        `select exists (
           select from pg_inherits where inhparent = 'scans'::regclass and inhrelid = to_regclass($1)
         ) as attached`,
        [name],
      );
      if (rows[0]?.attached) return;
      await tx.query(`create table ${name} (like scans including all)`);
      await tx.query(
        `alter table scans attach partition ${name}
         for values from ('${month}-01T00:00:00Z') to ('${monthAfter(month)}-01T00:00:00Z')`,
      );
    });
  }
}
