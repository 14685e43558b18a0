import { Migration } from '@mikro-orm/migrations';

/** Which disabled endpoints have pending deliveries left. */
export class DisabledEndpoints extends Migration {
  override up(): void {
    this.addSql(`
      alter table webhook_endpoints add column fails_pending boolean not null default false;
      create index webhook_endpoints_fail_pending on webhook_endpoints (id) where fails_pending;
    `);
  }
}
