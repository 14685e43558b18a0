import { Migration } from '@mikro-orm/migrations';

/**
 * Daily counts of answered, published and recorded scans; archives of old months; accounts whose scans were deleted.
 */
export class ScanLedger extends Migration {
  override up(): void {
    this.addSql(`
      -- What each run of a gateway told of a day's scans; figures only rise. day is the scans' own, in UTC.
      create table scan_gateways (
        day date not null,
        gateway text collate "C" not null,
        answered bigint not null,
        lost bigint not null,
        published bigint not null,
        primary key (day, gateway)
      ) with (fillfactor = 70);

      -- What recorders made of a day's records: a row a partition, so that they do not wait for each other. Scans that
      -- were deleted on request are in partition -1.
      create table scan_ledger (
        day date not null,
        partition integer not null,
        recorded bigint not null default 0,
        duplicates bigint not null default 0,
        dead_lettered bigint not null default 0,
        deleted bigint not null default 0,
        primary key (day, partition)
      ) with (fillfactor = 70);

      -- The next record of each partition of the topic, moved in the transaction that records the ones before it.
      create table scan_positions (
        partition integer primary key,
        position bigint not null
      ) with (fillfactor = 50);

      -- Months that were taken out of scans, which may be in several parts: late scans open a month again. The rows are
      -- in the table scans_YYYY_MM_partN, or, once file is set, in that file of DATA_DIR/archive.
      create table scan_archives (
        month date not null,
        part smallint not null,
        file text,
        scans bigint not null,
        archived_at timestamptz not null,
        primary key (month, part)
      );

      -- The ids of archived scans, 16 bytes each, some 1,000 in a row, in order: so that none is ever recorded again.
      create table scan_archived_ids (
        month date not null,
        part smallint not null,
        first_id uuid not null,
        ids bytea not null,
        primary key (month, part, first_id)
      );
      alter table scan_archived_ids alter column ids set storage external;

      -- Accounts whose scans were deleted. What was answered before it was asked for and arrives later is deleted as
      -- well. done_at: archives that are older hold nothing of the account.
      create table scan_deletions (
        account_id uuid primary key,
        asked_at timestamptz not null,
        done_at timestamptz
      );
    `);
  }
}
