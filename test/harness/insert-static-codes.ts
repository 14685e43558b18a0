import type { Client } from 'pg';
import { decodeId } from '../../common/contract/ids.ts';

/** Adds static codes to an account, `acct_…`, as if it had created them. */
export async function insertStaticCodes(client: Client, accountId: string, count: number): Promise<void> {
  await client.query(
    `with inserted as (
       insert into codes (id, account_id, type, short_code, payload)
       select uuidv7(), $1, 'static', gen_random_uuid()::text, 'x' from generate_series(1, $2)
     )
     update code_counts set listed = listed + $2 where account_id = $1`,
    [decodeId('acct', accountId), count],
  );
}
