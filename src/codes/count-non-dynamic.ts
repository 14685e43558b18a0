import type { PoolClient } from 'pg';
import { first, statement } from '../../common/postgres/sql.ts';

/** Index: codes_not_dynamic. */
const count = statement<{ codes: string }>(
  'codes_count_non_dynamic',
  `select count(*) as codes from codes where account_id = $1 and type <> 'dynamic' and deleted_at is null`,
);

/**
 * Counts an account's static and landing-page codes. The counters can't tell: those of a batch that are still to be
 * created are in `live`, and not yet in `listed`. The transaction must have locked the account's counter.
 */
export async function countNonDynamic(tx: PoolClient, accountId: string): Promise<number> {
  return Number((await first(tx, count, [accountId]))?.codes ?? 0);
}
