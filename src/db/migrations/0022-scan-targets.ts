import { Migration } from '@mikro-orm/migrations';

/** What decided a scan of a code with a policy: in the scans, and as counters of a code's days. */
export class ScanTargets extends Migration {
  override up(): void {
    this.addSql(`
      -- Null in scans of codes without a policy, and in those that were recorded before.
      alter table scans
        add column target_version integer null,
        add column target_rule smallint null,
        add column target_variant text collate "C" null;
      -- Months that are archived to a table are moved to files with all columns of scans.
      do $body$
      declare archive text;
      begin
        for archive in
          select format('scans_%s_part%s', to_char(month, 'YYYY_MM'), part) from scan_archives where file is null
        loop
          execute format(
            'alter table %I add column target_version integer null, add column target_rule smallint null,
               add column target_variant text collate "C" null',
            archive
          );
        end loop;
      end $body$;

      create table scan_targets (
        code_id uuid not null,
        day date not null,
        version integer not null,
        rule smallint not null,
        variant text collate "C" not null,
        account_id uuid not null,
        scans bigint not null,
        primary key (code_id, day, version, rule, variant)
      ) with (fillfactor = 70);

      -- A trigger, so that the previous version, which does not know the table, deletes from it too.
      create function delete_scan_targets() returns trigger language plpgsql as $body$
      begin
        delete from scan_targets t using removed r where t.code_id = r.code_id and t.day = r.day;
        return null;
      end $body$;
      create trigger targets_deleted after delete on scan_days referencing old table as removed
        for each statement execute function delete_scan_targets();
    `);
  }
}
