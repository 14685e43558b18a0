import { Migration } from '@mikro-orm/migrations';

/** Accounts, their keys and meters; codes, folders, tags, domains; idempotency keys; the outbox. */
export class AccountsAndCodes extends Migration {
  override up(): void {
    this.addSql(`
      create table accounts (
        id uuid primary key,
        name text not null,
        plan text not null check (plan in ('free', 'business', 'scale', 'enterprise')),
        monthly_quota bigint,
        code_limit bigint,
        batch_limit integer,
        feature_api boolean,
        feature_bulk boolean,
        feature_images boolean,
        created_at timestamptz not null default now(),
        closed_at timestamptz
      );
      comment on table accounts is 'What is null here comes from the plan.';

      create table api_keys (
        account_id uuid primary key references accounts,
        id uuid not null,
        -- SHA-256 of the key; the key itself is kept nowhere.
        hash bytea not null unique,
        created_at timestamptz not null default now()
      );

      -- One row an account, rewritten by every request: nothing else may hold its lock for longer than a statement.
      create table meters (
        account_id uuid primary key references accounts,
        month date not null default date_trunc('month', now() at time zone 'utc'),
        used bigint not null default 0,
        -- A ring of the last 120 admissions in ms since 1970; turn is the place of the oldest.
        admissions bigint[] not null default array_fill(0::bigint, array[120]),
        turn smallint not null default 1
      ) with (fillfactor = 50);

      -- Live dynamic codes, moved in the transaction that creates, deletes or restores one.
      create table code_counts (
        account_id uuid primary key references accounts,
        live bigint not null default 0
      ) with (fillfactor = 50);

      create table idempotency (
        account_id uuid not null references accounts,
        key text collate "C" not null,
        fingerprint bytea not null,
        -- A serialised signpost response, or the error that was answered.
        response bytea,
        error jsonb,
        created_at timestamptz not null default now(),
        primary key (account_id, key)
      );
      create index idempotency_age on idempotency (created_at);

      create table domains (
        id uuid primary key,
        account_id uuid not null references accounts,
        hostname text not null unique,
        state text not null default 'pending' check (state in ('pending', 'verified', 'live', 'failing')),
        token text not null,
        version bigint not null default 1,
        created_at timestamptz not null default now()
      );

      create table folders (
        id uuid primary key,
        account_id uuid not null references accounts,
        name text not null,
        created_at timestamptz not null default now()
      );
      create unique index folders_name on folders (account_id, lower(name collate "pg_c_utf8"));

      create table tags (
        id uuid primary key,
        account_id uuid not null references accounts,
        name text not null,
        created_at timestamptz not null default now()
      );
      create unique index tags_name on tags (account_id, lower(name collate "pg_c_utf8"));

      create table codes (
        id uuid primary key,
        account_id uuid not null references accounts,
        type text not null check (type in ('dynamic', 'static', 'landing_page')),
        short_code text collate "C" not null unique,
        target_url text,
        payload text,
        landing_page jsonb,
        name text,
        paused boolean not null default false,
        folder_id uuid references folders,
        campaign_type text,
        -- No reference: a domain may be removed while codes are printed on it.
        domain_id uuid,
        -- The custom domain as it was printed; null means the platform's host.
        hostname text,
        foreground_color text not null default '#000000',
        background_color text not null default '#ffffff',
        -- Rises with every change; gateways keep the newest.
        version bigint not null default 1,
        created_at timestamptz not null default now(),
        updated_at timestamptz not null default now(),
        deleted_at timestamptz
      );
      create index codes_listed on codes (account_id, id desc) where deleted_at is null;
      create index codes_in_folder on codes (account_id, folder_id, id desc) where deleted_at is null;

      create table code_tags (
        code_id uuid not null references codes,
        tag_id uuid not null references tags,
        primary key (code_id, tag_id)
      );
      create index code_tags_by_tag on code_tags (tag_id, code_id desc);

      -- A change on its way to the log: written with the change, deleted once the log has it.
      create table outbox (
        id bigint generated always as identity primary key,
        topic text not null,
        key text not null,
        headers jsonb not null default '{}',
        value bytea
      );
    `);
  }
}
