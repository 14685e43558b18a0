import { Migration } from '@mikro-orm/migrations';

/** Policies of targets, and the versions of targets that were changed. */
export class Targets extends Migration {
  override up(): void {
    this.addSql(`
      alter table codes
        add column policy jsonb null,
        add column target_version integer not null default 1;
      create table target_versions (
        account_id uuid not null references accounts,
        code_id uuid not null,
        version integer not null,
        target_url text not null,
        policy jsonb null,
        author text not null,
        note text not null,
        created_at timestamptz not null,
        primary key (account_id, code_id, version)
      );
    `);
  }
}
