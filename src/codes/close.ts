import type { Pool, PoolClient } from 'pg';
import { ROUTED_COLUMNS, type RoutedCode } from '../../common/contract/route.ts';
import { run, statement, transaction } from '../../common/postgres/sql.ts';
import { listed } from '../db/columns.ts';
import { copyToOutbox } from '../events/outbox.ts';
import { scanCounts } from '../scans/reports/scan-counts.ts';
import { announceAll, routeRecord } from './announce.ts';
import { CHANGED, CODE_COLUMNS, type CodeRow, codeFrom, ERASED_COLUMNS } from './code-row.ts';

/** Codes a transaction: short enough for others to wait for, long enough to clear a million codes in minutes. */
const AT_ONCE = 500;

/** Index: codes_listed. In one order, so that two of these never wait for each other in a circle. */
const lockLive = statement<{ id: string }>(
  'codes_lock_live',
  `select id from codes where account_id = $1 and deleted_at is null order by id desc limit ${AT_ONCE} for update`,
);

/** Indexes: codes_pkey, code_counts_pkey. */
const removeAll = statement(
  'codes_delete_all',
  `with removed as (
     update codes set deleted_at = now(), ${CHANGED}
     where account_id = $1 and id = any($2::uuid[]) returning type
   )
   update code_counts
   set listed = listed - (select count(*) from removed),
       live = live - (select count(*) from removed where type = 'dynamic')
   where account_id = $1`,
);

/** Index: codes_pkey. */
const read = statement<CodeRow>(
  'codes_read_all',
  `select ${CODE_COLUMNS} from codes c where c.account_id = $1 and c.id = any($2::uuid[])`,
);

/**
 * Stops all codes of an account: each is deleted, and announced as if it had been deleted by itself. Goes on where an
 * earlier call was interrupted. `accountId`, here and below: UUID.
 */
export async function archiveCodes(pool: Pool, platformUrl: string, accountId: string): Promise<void> {
  let more: boolean;
  do more = await transaction(pool, (tx) => archiveSome(tx, platformUrl, accountId));
  while (more);
}

async function archiveSome(tx: PoolClient, platformUrl: string, accountId: string): Promise<boolean> {
  const ids = (await run(tx, lockLive, [accountId])).map(({ id }) => id);
  if (ids.length === 0) return false;
  await run(tx, removeAll, [accountId, ids]);
  const scans = await scanCounts(tx, accountId, ids);
  const rows = await run(tx, read, [accountId, ids]);
  await announceAll(tx, rows, (row) => codeFrom(row, platformUrl, scans.get(row.id) ?? 0), { type: 'qr.archived' });
  return true;
}

const ERASURE = ERASED_COLUMNS.map(({ name, nullable }) => `${name} = ${nullable ? 'null' : 'default'}`).join(', ');
const PRESENT = listed(ERASED_COLUMNS.filter(({ nullable }) => nullable));

/** Index: codes_deleted. */
const erase = statement<RoutedCode>(
  'codes_erase',
  `update codes set ${ERASURE}, version = version + 1
   where account_id = $1 and id in (
     select id from codes
     where account_id = $1 and deleted_at is not null and num_nonnulls(${PRESENT}) > 0
     order by id limit ${AT_ONCE} for update
   )
   returning ${ROUTED_COLUMNS.join(', ')}`,
);

/** Erases what deleted codes of an account were; goes on where an earlier call was interrupted. */
export async function eraseCodes(pool: Pool, accountId: string): Promise<void> {
  const eraseSome = async (tx: PoolClient) => {
    const rows = await run(tx, erase, [accountId]);
    // The topic keeps the newest record of a code for ever: without this, the one that names what it led to.
    await copyToOutbox(tx, rows, (row) => [routeRecord(row)]);
    return rows.length > 0;
  };
  let more: boolean;
  do more = await transaction(pool, eraseSome);
  while (more);
}
