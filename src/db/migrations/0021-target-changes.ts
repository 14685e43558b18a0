import { Migration } from '@mikro-orm/migrations';

/** Changes of many targets at once, and their rows. */
export class TargetChanges extends Migration {
  override up(): void {
    this.addSql(`
      alter table target_versions drop constraint target_versions_account_id_fkey;

      create table target_changes (
        id uuid primary key,
        account_id uuid not null references accounts,
        dry_run boolean not null,
        author text not null,
        note text not null,
        total integer not null,
        changed integer not null default 0,
        unchanged integer not null default 0,
        failed integer not null,
        -- Rows before this index are final.
        position integer not null default 0,
        created_at timestamptz not null default now(),
        completed_at timestamptz null
      ) with (fillfactor = 50);
      create index target_changes_listed on target_changes (account_id, id);
      create index target_changes_unfinished on target_changes (created_at) where completed_at is null;

      create table target_change_rows (
        account_id uuid not null,
        change_id uuid not null,
        index integer not null,
        reference_kind text null check (reference_kind in ('id', 'short_code', 'external_ref')),
        reference text null,
        target_url text null,
        policy jsonb null,
        code_id uuid null,
        outcome text null check (outcome in ('unchanged', 'failed')),
        version integer null,
        reason text null,
        primary key (account_id, change_id, index)
      );
    `);
  }
}
