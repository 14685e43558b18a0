import type { Pool } from 'pg';
import { run, statement, transaction } from '../db/sql.ts';

/** Index: scans_of_account, in each month. */
const FORGET_ROWS = statement<{ id: string }>(
  'forget_scans',
  `delete from scans where (id, scanned_at) in (
     select id, scanned_at from scans where account_id = $1 order by scanned_at, id limit 10000
   ) returning id`,
);

// `scan_totals_of_account`.
const COUNTED = statement<{ code_id: string }>(
  'forget_scans_of',
  'select code_id from scan_totals where account_id = $1 order by code_id limit 200',
);

// Primary keys, in the order in which recorders write.
const FORGET_COUNTS = [
  ...['scan_visitors', 'scan_days', 'scan_hours', 'scan_values'].map((table) =>
    statement(`forget_${table}`, `delete from ${table} where code_id = any($1::uuid[])`),
  ),
  statement('forget_scan_totals', 'delete from scan_totals where code_id = any($1::uuid[])'),
];

/** Forgets all scans of an account and what was counted of them, some at a time. `accountId`: UUID. */
export async function forgetScans(pool: Pool, accountId: string): Promise<void> {
  let rows: unknown[];
  do rows = await run(pool, FORGET_ROWS, [accountId]);
  while (rows.length > 0);
  for (;;) {
    const codes = (await run(pool, COUNTED, [accountId])).map(({ code_id }) => code_id);
    if (codes.length === 0) return;
    await transaction(pool, async (tx) => {
      for (const forget of FORGET_COUNTS) await run(tx, forget, [codes]);
    });
  }
}
