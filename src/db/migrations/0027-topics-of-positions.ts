import { Migration } from '@mikro-orm/migrations';

/** The topic to which the position of a recorder belongs. */
export class TopicsOfPositions extends Migration {
  override up(): void {
    this.addSql(`
      -- The id that the log assigned to the topic. Null: recorded by an earlier version.
      alter table scan_positions add column topic_id text;
    `);
  }
}
