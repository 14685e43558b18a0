import type { Pool } from 'pg';
import { run, statement } from '../db/sql.ts';

/** Indexes: webhook_endpoints_of_account; the deliveries and attempts go by their foreign keys. */
const forget = statement('webhooks_forget', 'delete from webhook_endpoints where account_id = $1');

/** Forgets all endpoints of an account with their deliveries. `accountId`: UUID. */
export async function forgetEndpoints(pool: Pool, accountId: string): Promise<void> {
  await run(pool, forget, [accountId]);
}
