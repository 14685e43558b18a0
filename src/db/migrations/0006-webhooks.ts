import { Migration } from '@mikro-orm/migrations';

/** Webhook endpoints, and deliveries of events to them. */
export class Webhooks extends Migration {
  override up(): void {
    this.addSql(`
      create table webhook_endpoints (
        id uuid primary key,
        account_id uuid not null references accounts on delete cascade,
        url text not null,
        events text[] not null,
        -- Null while it is enabled.
        disabled_reason text,
        -- Encrypted; the former one signs beside it until then.
        secret bytea not null,
        former_secret bytea,
        former_until timestamptz,
        -- The first failure since the last success.
        failing_since timestamptz,
        -- No later than the first delivery that waits; null when none does.
        due_at timestamptz,
        -- The process that delivers to it; nobody else does until then.
        leased_by uuid,
        leased_until timestamptz,
        created_at timestamptz not null default now()
      ) with (fillfactor = 70);
      create index webhook_endpoints_of_account on webhook_endpoints (account_id, id desc);
      create index webhook_endpoints_due on webhook_endpoints (due_at) where due_at is not null;

      create table webhook_deliveries (
        id uuid primary key,
        endpoint_id uuid not null references webhook_endpoints on delete cascade,
        account_id uuid not null,
        event_id uuid not null,
        event_type text collate "C" not null,
        -- Exactly what is sent and signed.
        body text not null,
        status text collate "C" not null default 'pending' check (status in ('pending', 'succeeded', 'failed')),
        -- Since it was made or sent again: where it is on the schedule.
        attempts integer not null default 0,
        next_attempt_at timestamptz default now(),
        created_at timestamptz not null default now(),
        check ((status = 'pending') = (next_attempt_at is not null)),
        -- However often an event comes, it is delivered to an endpoint once.
        unique (endpoint_id, event_id)
      );
      create index webhook_deliveries_listed on webhook_deliveries (endpoint_id, id desc);
      create index webhook_deliveries_due on webhook_deliveries (endpoint_id, next_attempt_at) where status = 'pending';
      create index webhook_deliveries_failed on webhook_deliveries (endpoint_id, id desc) where status = 'failed';

      create table webhook_attempts (
        delivery_id uuid not null references webhook_deliveries on delete cascade,
        at timestamptz not null,
        -- Null when there was no answer.
        status integer,
        latency_ms integer not null,
        response text not null,
        primary key (delivery_id, at)
      );
    `);
  }
}
