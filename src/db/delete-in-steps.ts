import type { Pool } from 'pg';
import { run, statement } from '../../common/postgres/sql.ts';

/** Rows per statement. */
const MAX_DELETED = 5_000;

/** Rows of a table, in SQL. */
interface Rows {
  readonly table: string;
  /** The columns of its primary key. */
  readonly key: string;
  readonly where: string;
  /** How their rows are locked before they are deleted, such as `for update skip locked`. */
  readonly locking?: string;
}

/**
 * Declares a statement that deletes up to 5,000 rows, and returns a function that repeats it until none, or only locked
 * ones, are left, or until `stopping` is aborted. `name`: as for `statement`. The function takes the parameters of
 * `where`.
 */
export function deletionInSteps(
  name: string,
  { table, key, where, locking = '' }: Rows,
): (pool: Pool, values?: readonly unknown[], stopping?: AbortSignal) => Promise<void> {
  const deleteSome = statement(
    name,
    `with deleted as (
       delete from ${table} where (${key}) in (
         select ${key} from ${table} where ${where} limit ${MAX_DELETED} ${locking}
       )
       returning 1
     )
     select 1 from deleted limit 1`,
  );
  return async (pool, values, stopping) => {
    while (!stopping?.aborted && (await run(pool, deleteSome, values)).length > 0);
  };
}
