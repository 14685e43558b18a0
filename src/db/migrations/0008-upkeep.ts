import { Migration } from '@mikro-orm/migrations';

/** What renaming, merging and deleting folders, and closing accounts need. */
export class Upkeep extends Migration {
  override up(): void {
    this.addSql(`
      -- Deleted codes keep their folder, so the list's own index does not find all codes of one; nor would the foreign
      -- key when a folder goes.
      create index codes_filed on codes (folder_id) where folder_id is not null;
    `);
  }
}
