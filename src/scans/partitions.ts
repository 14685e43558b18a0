import type { Pool } from 'pg';
import { promptStatement, type Queryable, run, transactionWithin } from '../../common/postgres/sql.ts';
import { LOCKS } from '../db/locks.ts';
import { dayOf } from './days.ts';

/** How long creating a partition may take, in ms. Polls wait for it, and a vanished Postgres must not stop them. */
const CREATION_MS = 20_000;

/** The UTC month of a time in ms since 1970, `YYYY-MM`. */
export function monthOf(time: number): string {
  return dayOf(time).slice(0, 7);
}

/** The month after this one. */
export function monthAfter(month: string): string {
  return monthsLater(month, 1);
}

/** The month `months` later; negative for earlier. */
export function monthsLater(month: string, months: number): string {
  const start = new Date(`${month}-01T00:00:00Z`);
  return monthOf(start.setUTCMonth(start.getUTCMonth() + months));
}

/** The partition that holds a month. */
export function partitionOf(month: string): string {
  return `scans_${month.replace('-', '_')}`;
}

/** System catalog: one row per month. */
const listMonths = promptStatement<{ month: string }>(
  'scans_list_months',
  `select replace(substr(relname, 7), '_', '-') as month from pg_inherits join pg_class c on c.oid = inhrelid
   where inhparent = 'scans'::regclass order by 1`,
);

/** The months that have a partition of `scans`, oldest first. */
export async function monthsInTable(on: Queryable): Promise<string[]> {
  return (await run(on, listMonths)).map(({ month }) => month);
}

/**
 * Creates the missing partitions of `scans` for these months. Each table is created on its own and then attached,
 * which, unlike `create table … partition of`, does not block reads and writes of `scans`.
 */
export async function ensureMonths(pool: Pool, months: readonly string[]): Promise<void> {
  if (months.length === 0) return;
  const existing = new Set(await monthsInTable(pool));
  for (const month of months) {
    if (existing.has(month)) continue;
    const name = partitionOf(month);
    await transactionWithin(pool, CREATION_MS, async (tx) => {
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
