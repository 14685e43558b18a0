import type { PoolClient } from 'pg';
import { run, statement } from '../../../common/postgres/sql.ts';
import { DAY_MS } from '../../../common/runtime/durations.ts';
import { mayBeArchived } from '../archive/archive.ts';
import { columnArrays } from '../column-arrays.ts';
import { monthOf } from '../partitions.ts';
import type { DerivedScan } from './derive.ts';

/**
 * How long a poll takes at most from its decoding to its insert, in ms. When a month begins meanwhile, another process
 * may archive one that could not be archived when the poll was decoded.
 */
const POLL_MS = DAY_MS;

/** Index: primary key. */
const findDeletions = statement<{ account_id: string; requested_ms: number }>(
  'scans_find_deletions',
  `select account_id, (extract(epoch from asked_at) * 1000)::float8 as requested_ms from scan_deletions
   where account_id = any($1::uuid[])`,
);

/** Indexes: primary keys, for each part of the month, the one row of ids whose range includes the scan's. */
const findArchived = statement<{ id: string }>(
  'scans_find_archived',
  `select inserted.id
   from unnest($1::uuid[], $2::date[]) as inserted (id, month)
     join scan_archives a using (month)
     cross join lateral (
       select ids from scan_archived_ids c
       where c.month = a.month and c.part = a.part and c.first_id <= inserted.id
       order by first_id desc limit 1
     ) c
   where position(uuid_send(inserted.id) in c.ids) % 16 = 1`,
);

/** Index: primary key. */
const deleteInserted = statement(
  'scans_discard_inserted',
  'delete from scans where (id, scanned_at) in (select * from unnest($1::uuid[], $2::timestamptz[]))',
);

/** The inserted scans that stay, and the ones whose account requested deletion before they arrived. */
export interface Inserted {
  readonly kept: readonly DerivedScan[];
  readonly deleted: readonly DerivedScan[];
}

/**
 * Deletes, of the rows that this transaction inserted, those that are already archived and those of accounts that had
 * their scans deleted. The check follows the insert because from then until the end of the transaction no month can be
 * detached and no deletion can start, so the answer cannot change any more. `now`: when the poll was decoded, in
 * ms since 1970.
 */
export async function discardInserted(
  tx: PoolClient,
  inserted: readonly DerivedScan[],
  now: number,
): Promise<Inserted> {
  if (inserted.length === 0) return { kept: [], deleted: [] };
  const requests = new Map(
    (await run(tx, findDeletions, [[...new Set(inserted.map(({ accountId }) => accountId))]])).map(
      ({ account_id, requested_ms }) => [account_id, requested_ms],
    ),
  );
  const archived = await archivedAmong(tx, inserted, now);
  if (requests.size === 0 && archived.size === 0) return { kept: inserted, deleted: [] };
  const deleted: DerivedScan[] = [];
  const kept: DerivedScan[] = [];
  for (const scan of inserted) {
    if (archived.has(scan.id)) continue;
    const afterRequest = scan.scannedAt >= (requests.get(scan.accountId) ?? Number.NEGATIVE_INFINITY);
    (afterRequest ? kept : deleted).push(scan);
  }
  const keep = new Set(kept);
  const discarded = inserted.filter((scan) => !keep.has(scan));
  await run(
    tx,
    deleteInserted,
    columnArrays(
      discarded,
      ({ id }) => id,
      ({ scannedAt }) => new Date(scannedAt).toISOString(),
    ),
  );
  return { kept, deleted };
}

async function archivedAmong(tx: PoolClient, scans: readonly DerivedScan[], now: number): Promise<Set<string>> {
  const days = new Map(scans.map(({ day, scannedAt }) => [day, scannedAt]));
  for (const [day, at] of days) if (!mayBeArchived(monthOf(at), now + POLL_MS)) days.delete(day);
  const old = days.size === 0 ? [] : scans.filter(({ day }) => days.has(day));
  if (old.length === 0) return new Set();
  const ids = columnArrays(
    old,
    ({ id }) => id,
    ({ scannedAt }) => `${monthOf(scannedAt)}-01`,
  );
  return new Set((await run(tx, findArchived, ids)).map(({ id }) => id));
}
