import { Migration } from '@mikro-orm/migrations';

/** A new endpoint gets a test event before any other, and failed attempts are limited. */
export class WebhookVerification extends Migration {
  override up(): void {
    this.addSql(`
      alter table webhook_endpoints
        -- When it first answered at this address; null: it is sent nothing but test events.
        add column verified_at timestamptz,
        -- While it fails: no attempt before.
        add column attempt_after timestamptz;
      -- Those that exist were added when no test was asked for.
      update webhook_endpoints set verified_at = now();
      create index webhook_deliveries_tests on webhook_deliveries (endpoint_id, next_attempt_at)
        where status = 'pending' and event_type = 'webhook.test';

      -- Attempts to endpoints of an account on one host that fail; see attempt-budgets.ts.
      create table webhook_attempt_budgets (
        account_id uuid not null,
        host text collate "C" not null,
        spent_until timestamptz not null,
        primary key (account_id, host)
      );
    `);
  }
}
