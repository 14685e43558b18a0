import type { Pool } from 'pg';
import { first, statement } from '../../../common/postgres/sql.ts';
import {
  codesOf,
  directionOf,
  type Filter,
  type FilterValues,
  indexedCondition,
  nameOfFilter,
  orderOf,
  testedCondition,
} from './code-filter.ts';

/**
 * Codes that one call tests, about 1.4 µs each: an index of their text would take more of every batch than it saves.
 */
export const MAX_TESTED = 100_000;

interface TestedRow {
  ids: string[];
  total: string;
  last: string | null;
}

/** Indexes: those of `indexedCondition`. */
const test = (filter: Filter) =>
  statement<TestedRow>(
    `codes_test_${nameOfFilter(filter)}`,
    `with tested as materialized (
       select c.id, ${testedCondition(filter)} as matches
       from ${codesOf(filter)} where ${indexedCondition(filter)} order by ${orderOf(filter)} limit ${MAX_TESTED}
     )
     select array(select id from tested where matches order by id ${directionOf(filter)} limit $7 + 1 offset $8) as ids,
       count(*) filter (where matches) as total,
       case when count(*) = ${MAX_TESTED} then
         (select id from tested order by id ${directionOf(filter)} offset ${MAX_TESTED - 1})
       end as last
     from tested`,
  );

/** The codes that match among those that were tested. */
export interface TestedCodes {
  /** UUIDs, in order: one more than the page has, if it is full and another code matches. */
  readonly ids: readonly string[];
  /** How many match. */
  readonly total: number;
  /** The UUID of the last code that was tested, if there may be others after it. */
  readonly last: string | null;
}

/** Tests the next codes of a list, at most `MAX_TESTED`, and returns the page of those that match. */
export async function testCodes(
  pool: Pool,
  filter: Filter,
  values: FilterValues,
  { text, limit, offset }: { readonly text: string | null; readonly limit: number; readonly offset: number },
): Promise<TestedCodes> {
  const row = await first(pool, test(filter), [...values, text, limit, offset]);
  return { ids: row?.ids ?? [], total: Number(row?.total ?? 0), last: row?.last ?? null };
}
