import { first, promptStatement, type Queryable } from '../../common/postgres/sql.ts';

const clock = promptStatement<{ now: number }>(
  'postgres_clock',
  'select floor(extract(epoch from clock_timestamp()) * 1000)::float8 as now',
);

/**
 * Postgres's clock, in whole ms since 1970. All cores share it: what must not go wrong with the clock of one machine,
 * such as deleting, goes by this one.
 */
export async function postgresNow(on: Queryable): Promise<number> {
  const row = await first(on, clock);
  if (!row) throw new Error('Postgres returned no time');
  return row.now;
}
