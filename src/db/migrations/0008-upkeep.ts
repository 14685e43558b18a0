import { Migration } from '@mikro-orm/migrations';

/** Members of accounts, and columns for renaming, merging and deleting folders and for closing accounts. */
export class Upkeep extends Migration {
  override up(): void {
    this.addSql(`
      create table members (
        id uuid primary key,
        account_id uuid not null references accounts on delete cascade,
        email text not null,
        role text not null check (role in ('owner', 'admin', 'editor', 'viewer')),
        created_at timestamptz not null default now()
      );
      create unique index members_email on members (account_id, lower(email collate "pg_c_utf8"));

      alter table accounts
        add column delete_data boolean not null default false,
        -- When what is left of a closed account is cleared next; null while it is open and when nothing can be left.
        add column clear_at timestamptz;
      create index accounts_to_clear on accounts (clear_at) where clear_at is not null;

      -- Deleted codes keep their folder, so the list's own index does not find all codes of one; nor would the foreign
      -- key when a folder goes.
      create index codes_filed on codes (folder_id) where folder_id is not null;
      create index codes_deleted on codes (account_id, id) where deleted_at is not null;
    `);
  }
}
