import { Migration } from '@mikro-orm/migrations';

/** Which core clears a closed account, so that one whose lease was taken over changes nothing of the next one. */
export class ClearingLease extends Migration {
  override up(): void {
    this.addSql('alter table accounts add column clearing_by uuid');
  }
}
