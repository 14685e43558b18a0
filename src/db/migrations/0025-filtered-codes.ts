import { Migration } from '@mikro-orm/migrations';

/**
 * Indexes of the codes that filters of a list select and of which an account has few. New dynamic codes are in neither.
 */
export class FilteredCodes extends Migration {
  override up(): void {
    this.addSql(`
      create index codes_paused on codes (account_id, id) where paused and deleted_at is null;
      create index codes_not_dynamic on codes (account_id, type, id) where type <> 'dynamic' and deleted_at is null;
    `);
  }
}
