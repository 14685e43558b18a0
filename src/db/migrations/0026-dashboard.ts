import { Migration } from '@mikro-orm/migrations';

/**
 * The last 1,000 API requests of each account, in a ring whose rows are overwritten, and the sessions of the dashboard
 * that ended early.
 */
export class Dashboard extends Migration {
  override up(): void {
    this.addSql(`
      create table api_request_counts (
        account_id uuid primary key references accounts,
        recorded bigint not null
      ) with (fillfactor = 50);

      create table api_requests (
        account_id uuid not null references api_request_counts on delete cascade,
        slot smallint not null,
        id uuid not null,
        at timestamptz not null,
        request_id text not null,
        method text not null,
        path text not null,
        status smallint not null,
        reason text,
        duration_ms integer not null,
        primary key (account_id, slot)
      ) with (fillfactor = 75);

      create table ended_sessions (
        -- HMAC of what identifies the session, which only the dashboard can compute.
        key bytea primary key,
        ended_at timestamptz not null default now()
      );
      create index ended_sessions_age on ended_sessions (ended_at);
    `);
  }
}
