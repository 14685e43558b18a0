import { Migration } from '@mikro-orm/migrations';

/** The secrets that an endpoint had before its former one. */
export class OlderSecrets extends Migration {
  override up(): void {
    this.addSql(`
      -- Encrypted, youngest first; each signs until the time at the same index.
      alter table webhook_endpoints
        add column older_secrets bytea[] not null default '{}',
        add column older_until timestamptz[] not null default '{}';
    `);
  }
}
