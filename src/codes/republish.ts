import type { Pool } from 'pg';
import { ROUTED_COLUMNS, type RoutedCode } from '../../common/contract/route.ts';
import { run, statement, transaction } from '../../common/postgres/sql.ts';
import { copyToOutbox } from '../events/outbox.ts';
import { routeRecord } from './announce.ts';

/** Codes per transaction. */
const MAX_CODES = 1_000;

const ROUTED = ROUTED_COLUMNS.join(', ');

/** Raises the versions of the next codes of any account. Indexes: codes_short_code_key, codes_pkey. */
const raiseVersions = statement<RoutedCode>(
  'codes_raise_versions',
  `update codes set version = greatest(version + $2, (extract(epoch from now()) * 1000)::bigint)
   where (account_id, id) in (
     select account_id, id from codes where short_code > $1 order by short_code limit ${MAX_CODES} for update
   )
   returning ${ROUTED}`,
);

/**
 * Locks the codes until the transaction ends, so that routes of concurrent changes are published before or after these.
 * Index: codes_short_code_key.
 */
const lockRouted = statement<RoutedCode>(
  'codes_lock_routed',
  `select ${ROUTED} from codes where short_code = any($1::text[]) order by short_code for no key update`,
);

/** Locks the next codes of any account, in the order of short codes. Index: codes_short_code_key. */
const lockNextRouted = statement<RoutedCode>(
  'codes_lock_next_routed',
  `select ${ROUTED} from codes where short_code > $1 order by short_code limit ${MAX_CODES} for no key update`,
);

/** Publishes the current routes of some codes; returns how many of the codes exist. */
export function republishRoutesOf(pool: Pool, shortCodes: readonly string[]): Promise<number> {
  return transaction(pool, async (tx) => {
    const codes = await run(tx, lockRouted, [shortCodes]);
    await copyToOutbox(tx, codes, (code) => [routeRecord(code)]);
    return codes.length;
  });
}

/**
 * Publishes the current routes of all codes of all accounts, after raising their versions by `versionOffset`, or to the
 * time in ms if that is more; 0: not at all. Returns the number of codes. Rejects once `signal` is aborted.
 */
export async function republishCodes(pool: Pool, versionOffset: number, signal?: AbortSignal): Promise<number> {
  let published = 0;
  for (let last = ''; ; ) {
    signal?.throwIfAborted();
    const rows = await transaction(pool, async (tx) => {
      const codes =
        versionOffset > 0 ? await run(tx, raiseVersions, [last, versionOffset]) : await run(tx, lockNextRouted, [last]);
      await copyToOutbox(tx, codes, (code) => [routeRecord(code)]);
      return codes;
    });
    published += rows.length;
    if (rows.length < MAX_CODES) return published;
    // Updated rows are returned in no order. Short codes are ASCII, so this order is that of their collation, "C".
    for (const { short_code } of rows) if (short_code > last) last = short_code;
  }
}
