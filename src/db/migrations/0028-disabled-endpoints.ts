import { Migration } from '@mikro-orm/migrations';

/** Which disabled endpoints have pending deliveries left, and which are deleted and have any left. */
export class DisabledEndpoints extends Migration {
  override up(): void {
    this.addSql(`
      alter table webhook_endpoints
        add column fails_pending boolean not null default false,
        add column deleted boolean not null default false;
      create index webhook_endpoints_unfinished on webhook_endpoints (id) where fails_pending or deleted;
    `);
  }
}
