import { Migration } from '@mikro-orm/migrations';

/** Recorded scans, and the counts that are updated as they are recorded. */
export class Scans extends Migration {
  override up(): void {
    this.addSql(`
      -- One row a scan. The id decides; scanned_at is in the key because partitions demand it, and a record that comes
      -- again brings the same time. No default partition: a row in it would stand in the way of the month it belongs
      -- to. The recorder makes a month before it writes into it. A month may be detached and archived once the topic
      -- keeps none of its scans: nothing below is computed from these rows again.
      create table scans (
        id uuid not null,
        scanned_at timestamptz not null,
        account_id uuid not null,
        code_id uuid not null,
        kind text collate "C" not null check (kind in ('person', 'bot', 'preview', 'prefetch')),
        -- Which version of the rules told kind, device, operating system and browser.
        rules smallint not null,
        country text collate "C" not null,
        device text collate "C" not null,
        operating_system text collate "C" not null,
        browser text collate "C" not null,
        referrer text collate "C" not null,
        -- A keyed hash whose key is destroyed after the day, or a random number.
        visitor bigint not null,
        primary key (id, scanned_at)
      ) partition by range (scanned_at);
      create index scans_of_account on scans (account_id, scanned_at, id);
      create index scans_of_code on scans (code_id, scanned_at, id);

      -- The keys of the visitor hashes. Unlogged: a key that was destroyed must not live on in the write-ahead log, a
      -- base backup or a replica.
      create unlogged table visitor_salts (
        day date primary key,
        salt bytea not null
      );

      -- Who has been counted, while the day's salt exists; then nobody can be recognised and the rows go.
      create table scan_visitors (
        day date not null,
        code_id uuid not null,
        visitor bigint not null,
        primary key (day, code_id, visitor)
      );

      -- Counters leave room on their pages, so that moving one stays on its page and touches no index.
      create table scan_totals (
        code_id uuid primary key,
        account_id uuid not null,
        scans bigint not null
      ) with (fillfactor = 70);
      create index scan_totals_of_account on scan_totals (account_id, code_id);

      create table scan_days (
        code_id uuid not null,
        day date not null,
        account_id uuid not null,
        scans bigint not null,
        unique_scans bigint not null,
        primary key (code_id, day)
      ) with (fillfactor = 70);

      -- A visitor counts in the hour of the first scan of the day, so that the hours add up to the day.
      create table scan_hours (
        code_id uuid not null,
        hour timestamptz not null,
        account_id uuid not null,
        scans bigint not null,
        unique_scans bigint not null,
        primary key (code_id, hour)
      ) with (fillfactor = 70);

      create type scan_dimension as enum ('country', 'device', 'operating_system', 'browser', 'referrer');
      create table scan_values (
        code_id uuid not null,
        day date not null,
        dimension scan_dimension not null,
        value text collate "C" not null,
        account_id uuid not null,
        scans bigint not null,
        primary key (code_id, day, dimension, value)
      ) with (fillfactor = 70);
    `);
  }
}
