import type { Database } from '../db/database.ts';
import { BatchEntity } from './entities.ts';

/** Deletes the batches of a closed account; their foreign key deletes the rows. `accountId`: UUID. */
export async function deleteAccountBatches({ orm }: Database, accountId: string): Promise<void> {
  await orm.em.fork().nativeDelete(BatchEntity, { accountId });
}
