import type { Pool } from 'pg';
import type { RoutedCode } from '../contract/route.ts';
import { run, statement, transaction } from '../db/sql.ts';
import { addToOutbox } from '../events/outbox.ts';
import { routeRecord } from './announce.ts';

/** Codes a transaction. */
const AT_ONCE = 1_000;

/** Of all accounts. Index: codes_pkey. */
const lift = statement<RoutedCode>(
  'codes_lift_versions',
  `update codes set version = version + $2
   where id in (select id from codes where id > $1 order by id limit ${AT_ONCE} for update)
   returning id, account_id, type, short_code, target_url, paused, hostname, landing_page, version, deleted_at`,
);

/**
 * Tells gateways anew where every code leads, whosever it is, in versions that are `lifted` above those here. Returns
 * how many there were.
 */
export async function republishCodes(pool: Pool, lifted: number): Promise<number> {
  let published = 0;
  for (let last = '00000000-0000-0000-0000-000000000000'; ; ) {
    const rows = await transaction(pool, async (tx) => {
      const codes = await run(tx, lift, [last, lifted]);
      if (codes.length > 0)
        await addToOutbox(
          tx,
          codes.map((code) => routeRecord(code)),
        );
      return codes;
    });
    published += rows.length;
    if (rows.length < AT_ONCE) return published;
    // The canonical form of UUIDs sorts as Postgres sorts them.
    const ids = rows.map(({ id }) => id).toSorted();
    last = ids.at(-1) ?? last;
  }
}
