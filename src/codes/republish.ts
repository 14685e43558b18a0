import type { Pool } from 'pg';
import type { RoutedCode } from '../contract/route.ts';
import { run, statement, transaction } from '../db/sql.ts';
import { copyToOutbox } from '../events/outbox.ts';
import { routeRecord } from './announce.ts';

/** Codes a transaction. */
const AT_ONCE = 1_000;

/** Of all accounts. Indexes: codes_short_code_key, codes_pkey. */
const lift = statement<RoutedCode>(
  'codes_lift_versions',
  `update codes set version = version + $2
   where (account_id, id) in (
     select account_id, id from codes where short_code > $1 order by short_code limit ${AT_ONCE} for update
   )
   returning id, account_id, type, short_code, target_url, paused, hostname, landing_page, version, deleted_at`,
);

/**
 * Tells gateways anew where every code leads, whosever it is, in versions that are `lifted` above those here. Returns
 * how many there were.
 */
export async function republishCodes(pool: Pool, lifted: number): Promise<number> {
  let published = 0;
  for (let last = ''; ; ) {
    const rows = await transaction(pool, async (tx) => {
      const codes = await run(tx, lift, [last, lifted]);
      await copyToOutbox(tx, codes, (code) => [routeRecord(code)]);
      return codes;
    });
    published += rows.length;
    if (rows.length < AT_ONCE) return published;
    // ASCII, in the order of its collation, "C".
    for (const { short_code } of rows) if (short_code > last) last = short_code;
  }
}
