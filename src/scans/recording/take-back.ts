import type { PoolClient } from 'pg';
import { run, statement } from '../../../common/postgres/sql.ts';
import { mayBeArchived } from '../archive/archive.ts';
import { monthOf } from '../partitions.ts';
import { columns } from './columns.ts';
import type { DerivedScan } from './derive.ts';

// Primary key.
const DELETIONS = statement<{ account_id: string; asked_ms: number }>(
  'scan_deletions_of',
  `select account_id, (extract(epoch from asked_at) * 1000)::float8 as asked_ms from scan_deletions
   where account_id = any($1::uuid[])`,
);

// Primary keys: for each part of the month, the row of ids that the scan's would be in.
const ARCHIVED = statement<{ id: string }>(
  'archived_scans_among',
  `select told.id
   from unnest($1::uuid[], $2::date[]) as told (id, month)
     join scan_archives a using (month)
     cross join lateral (
       select ids from scan_archived_ids c
       where c.month = a.month and c.part = a.part and c.first_id <= told.id
       order by first_id desc limit 1
     ) c
   where position(uuid_send(told.id) in c.ids) % 16 = 1`,
);

// Primary key.
const TAKE_BACK = statement(
  'take_back_scans',
  'delete from scans where (id, scanned_at) in (select * from unnest($1::uuid[], $2::timestamptz[]))',
);

/** What stays of scans that were just inserted, and which were deleted on request before they came. */
export interface Kept {
  readonly kept: readonly DerivedScan[];
  readonly deleted: readonly DerivedScan[];
}

/**
 * Takes back, of rows that this transaction inserted, the ones that were archived already and the ones whose account had
 * its scans deleted. It looks after it has written, because from then on no month is detached, and no deletion begins
 * to work, until the transaction ends: what could come in between has come.
 */
export async function takeBack(tx: PoolClient, inserted: readonly DerivedScan[]): Promise<Kept> {
  if (inserted.length === 0) return { kept: [], deleted: [] };
  const asked = new Map(
    (await run(tx, DELETIONS, [[...new Set(inserted.map(({ accountId }) => accountId))]])).map(
      ({ account_id, asked_ms }) => [account_id, asked_ms],
    ),
  );
  const archived = await archivedAmong(tx, inserted);
  if (asked.size === 0 && archived.size === 0) return { kept: inserted, deleted: [] };
  const deleted: DerivedScan[] = [];
  const kept: DerivedScan[] = [];
  for (const scan of inserted) {
    if (archived.has(scan.id)) continue;
    const wanted = scan.scannedAt >= (asked.get(scan.accountId) ?? Number.NEGATIVE_INFINITY);
    (wanted ? kept : deleted).push(scan);
  }
  const stay = new Set(kept);
  const back = inserted.filter((scan) => !stay.has(scan));
  await run(
    tx,
    TAKE_BACK,
    columns(
      back,
      ({ id }) => id,
      ({ scannedAt }) => new Date(scannedAt).toISOString(),
    ),
  );
  return { kept, deleted };
}

async function archivedAmong(tx: PoolClient, scans: readonly DerivedScan[]): Promise<Set<string>> {
  const now = Date.now();
  const days = new Map(scans.map(({ day, scannedAt }) => [day, scannedAt]));
  for (const [day, at] of days) if (!mayBeArchived(monthOf(at), now)) days.delete(day);
  const old = days.size === 0 ? [] : scans.filter(({ day }) => days.has(day));
  if (old.length === 0) return new Set();
  const ids = columns(
    old,
    ({ id }) => id,
    ({ scannedAt }) => `${monthOf(scannedAt)}-01`,
  );
  return new Set((await run(tx, ARCHIVED, ids)).map(({ id }) => id));
}
