import { Migration } from '@mikro-orm/migrations';

/** Codes whose folder or tag was renamed, merged or deleted, until their events have been emitted. */
export class RelabelledCodes extends Migration {
  override up(): void {
    this.addSql(`
      create table relabelled_codes (
        account_id uuid not null references accounts,
        code_id uuid not null,
        changed text[] not null,
        primary key (account_id, code_id)
      );
    `);
  }
}
