import { Migration } from '@mikro-orm/migrations';

/** Warnings of batch rows: what could not be applied to the row's code. */
export class RowWarnings extends Migration {
  override up(): void {
    this.addSql(`
      -- Null when everything was applied: of nearly all rows, which stay as they were written.
      alter table batch_rows add column warnings text[];
    `);
  }
}
