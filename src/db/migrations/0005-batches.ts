import { Migration } from '@mikro-orm/migrations';

/** Batches and their rows. */
export class Batches extends Migration {
  override up(): void {
    this.addSql(`
      create table batches (
        id uuid primary key,
        account_id uuid not null references accounts on delete cascade,
        name text,
        domain_id uuid,
        -- The custom domain as it is printed; null means the platform's host.
        hostname text,
        foreground_color text not null,
        background_color text not null,
        total integer not null,
        failed integer not null,
        skipped integer not null,
        created integer not null default 0,
        -- Rows before this index are final: of those, the ones without an outcome of their own are created.
        position integer not null default 0,
        created_at timestamptz not null default now(),
        completed_at timestamptz
      ) with (fillfactor = 50);
      create index batches_listed on batches (account_id, id desc);
      create index batches_unfinished on batches (created_at) where completed_at is null;

      -- Written once and never changed: what becomes of a row follows from its outcome and its batch's position.
      create table batch_rows (
        batch_id uuid not null references batches on delete cascade,
        index integer not null,
        target_url text,
        name text,
        campaign_type text,
        folder text,
        tags text[] not null,
        external_ref text,
        -- The code that it becomes; null when it becomes none.
        code_id uuid,
        -- Why it becomes none.
        outcome text check (outcome in ('failed', 'skipped')),
        reason text,
        primary key (batch_id, index)
      );
    `);
  }
}
