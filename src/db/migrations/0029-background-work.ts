import { Migration } from '@mikro-orm/migrations';

/** The unfinished work of an account, and who clears a closed account. */
export class BackgroundWork extends Migration {
  override up(): void {
    this.addSql(`
      -- By account: its unfinished work is counted whenever it gets more, and listed.
      drop index batches_unfinished;
      create index batches_unfinished on batches (account_id, id) where completed_at is null;
      drop index target_changes_unfinished;
      create index target_changes_unfinished on target_changes (account_id, id) where completed_at is null;

      -- Until then a core has the account to itself while it clears it; null when none does. Last, so that calls, which all read
      -- accounts, don't wait while the other tables are in use.
      alter table accounts add column clearing_until timestamptz;
    `);
  }
}
