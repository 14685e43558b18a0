import { Migration } from '@mikro-orm/migrations';

/** Who clears a closed account. */
export class BackgroundWork extends Migration {
  override up(): void {
    this.addSql(`
      -- Until then a core has the account to itself while it clears it; null when none does.
      alter table accounts add column clearing_until timestamptz;
    `);
  }
}
