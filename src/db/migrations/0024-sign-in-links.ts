import { Migration } from '@mikro-orm/migrations';

/** Links with which members sign in once, and an index of members by e-mail address. */
export class SignInLinks extends Migration {
  override up(): void {
    this.addSql(`
      create index members_by_email on members (lower(email collate "pg_c_utf8"), id);

      create table sign_in_links (
        member_id uuid primary key references members on delete cascade,
        account_id uuid not null references accounts,
        -- SHA-256 of the token.
        hash bytea not null unique,
        expires_at timestamptz not null
      );
      create index sign_in_links_expiry on sign_in_links (expires_at);
    `);
  }
}
