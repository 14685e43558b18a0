import { Migration } from '@mikro-orm/migrations';

/** The audit log. */
export class Audit extends Migration {
  override up(): void {
    this.addSql(`
      create table audit_entries (
        id uuid primary key,
        account_id uuid not null references accounts on delete cascade,
        at timestamptz not null default now(),
        actor text not null,
        action text not null,
        subject text not null
      );
      create index audit_entries_by_account on audit_entries (account_id, id desc);
    `);
  }
}
