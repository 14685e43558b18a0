import type { Pool } from 'pg';
import { ROUTED_COLUMNS, type RoutedCode } from '../../common/contract/route.ts';
import { run, statement, transaction } from '../../common/postgres/sql.ts';
import { copyToOutbox } from '../events/outbox.ts';
import { routeRecord } from './announce.ts';

/** Codes a transaction. */
const AT_ONCE = 1_000;

const ROUTED = ROUTED_COLUMNS.join(', ');

/** Of all accounts. Indexes: codes_short_code_key, codes_pkey. */
const lift = statement<RoutedCode>(
  'codes_lift_versions',
  `update codes set version = version + $2
   where (account_id, id) in (
     select account_id, id from codes where short_code > $1 order by short_code limit ${AT_ONCE} for update
   )
   returning ${ROUTED}`,
);

/** Whoever changes one of them comes before or after. Index: codes_short_code_key. */
const hold = statement<RoutedCode>(
  'codes_hold_routed',
  `select ${ROUTED} from codes where short_code = any($1::text[]) order by short_code for no key update`,
);

/** The same in order. Index: codes_short_code_key. */
const holdNext = statement<RoutedCode>(
  'codes_hold_next_routed',
  `select ${ROUTED} from codes where short_code > $1 order by short_code limit ${AT_ONCE} for no key update`,
);

/** Publishes the routes of some codes as they are now; returns how many there were. */
export function republishRoutesOf(pool: Pool, shortCodes: readonly string[]): Promise<number> {
  return transaction(pool, async (tx) => {
    const codes = await run(tx, hold, [shortCodes]);
    await copyToOutbox(tx, codes, (code) => [routeRecord(code)]);
    return codes.length;
  });
}

/**
 * Tells gateways anew where every code leads, whosever it is, in versions that are `lifted` above those here. Returns
 * how many there were.
 */
export async function republishCodes(pool: Pool, lifted: number): Promise<number> {
  let published = 0;
  for (let last = ''; ; ) {
    const rows = await transaction(pool, async (tx) => {
      const codes = lifted > 0 ? await run(tx, lift, [last, lifted]) : await run(tx, holdNext, [last]);
      await copyToOutbox(tx, codes, (code) => [routeRecord(code)]);
      return codes;
    });
    published += rows.length;
    if (rows.length < AT_ONCE) return published;
    // ASCII, in the order of its collation, "C".
    for (const { short_code } of rows) if (short_code > last) last = short_code;
  }
}
