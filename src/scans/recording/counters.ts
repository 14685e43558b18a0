import type { EntitySchema } from '@mikro-orm/core';
import type { PoolClient } from 'pg';
import { run, type Statement, statement } from '../../../common/postgres/sql.ts';
import { arrayParameters, arraysOf, type Column, columnsOf, copyRows, listed, type RowOf } from '../../db/columns.ts';
import { columnArrays, rowArrays } from '../column-arrays.ts';
import { ScanDayEntity, ScanHourEntity, ScanTargetEntity, ScanTotalEntity, ScanValueEntity } from '../entities.ts';
import {
  type CounterIncrements,
  type DayIncrement,
  type HourIncrement,
  REFERRERS_A_DAY,
  type TargetIncrement,
  type TotalIncrement,
  type ValueIncrement,
  WITHOUT_HOST,
} from './increments.ts';

/** A table of counters: its columns and the statement that inserts rows or adds to those that exist. */
interface Counters<Row> {
  readonly table: string;
  readonly columns: readonly Column[];
  readonly increment: Statement<never>;
  /** Carries the row's type; never set. */
  readonly row?: Row;
}

/** Each statement uses its table's primary key; the updated columns are in no index. */
function counters<Entity>(
  table: string,
  entity: EntitySchema<Entity>,
  key: readonly (keyof RowOf<Entity>)[],
): Counters<RowOf<Entity>> {
  const columns = columnsOf(entity);
  const increments = columns
    .filter(({ name }) => name !== 'account_id' && !key.some((column) => column === name))
    .map(({ name }) => `${name} = t.${name} + excluded.${name}`);
  return {
    table,
    columns,
    increment: statement(
      `scans_increment_${table}`,
      `insert into ${table} as t (${listed(columns)}) select * from unnest(${arrayParameters(columns)})
       on conflict (${key.join(', ')}) do update set ${increments.join(', ')}`,
    ),
  };
}

const DAYS = counters<ScanDayEntity>('scan_days', ScanDayEntity, ['code_id', 'day']);
const HOURS = counters<ScanHourEntity>('scan_hours', ScanHourEntity, ['code_id', 'hour']);
const VALUES = counters<ScanValueEntity>('scan_values', ScanValueEntity, ['code_id', 'day', 'dimension', 'value']);
const TARGETS = counters<ScanTargetEntity>('scan_targets', ScanTargetEntity, [
  'code_id',
  'day',
  'version',
  'rule',
  'variant',
]);
const TOTALS = counters<ScanTotalEntity>('scan_totals', ScanTotalEntity, ['code_id']);

/**
 * Index: primary key, one lookup per referrer, and for one that is new to its day, a count of that day's hosts.
 */
const findExcessReferrers = statement<{ index: number }>(
  'scans_find_excess_referrers',
  `select ordinality::integer - 1 as index
   from unnest($1::uuid[], $2::date[], $3::text[]) with ordinality as seen (code_id, day, value, ordinality)
   where case
     when exists (
       select from scan_values v
       where v.code_id = seen.code_id and v.day = seen.day and v.dimension = 'referrer' and v.value = seen.value
     ) then false
     else ${REFERRERS_A_DAY} <= (
       select count(*) from scan_values v
       where v.code_id = seen.code_id and v.day = seen.day and v.dimension = 'referrer' and v.value <> all($4::text[])
     )
   end`,
);

/** Increments every counter, in the transaction that inserts the scans counted. */
export async function incrementCounters(tx: PoolClient, increments: CounterIncrements): Promise<void> {
  const { fresh, known, totals } = increments;
  await insert(tx, DAYS, fresh.days, dayRow);
  await increment(tx, DAYS, known.days.map(dayRow));
  await insert(tx, HOURS, fresh.hours, hourRow);
  await increment(tx, HOURS, known.hours.map(hourRow));
  await insert(tx, VALUES, fresh.values, valueRow);
  await incrementValues(tx, known.values);
  await insert(tx, TARGETS, fresh.targets, targetRow);
  // Not as `rowArrays`: labels of variants may contain any printable character.
  if (known.targets.length > 0) {
    await run(tx, TARGETS.increment, arraysOf(TARGETS.columns, known.targets.map(targetRow)));
  }
  await increment(tx, TOTALS, totals.map(totalRow));
}

/** Copies rows of which none exists. */
function insert<Increment, Row extends object>(
  tx: PoolClient,
  { table, columns }: Counters<Row>,
  increments: readonly Increment[],
  rowOf: (increment: Increment) => Row,
): Promise<void> {
  return copyRows(tx, table, columns, increments, (each) => [rowOf(each)]);
}

async function increment<Row extends object>(
  tx: PoolClient,
  { columns, increment }: Counters<Row>,
  rows: readonly Row[],
): Promise<void> {
  await run(tx, increment, rowArrays(columns, rows));
}

function dayRow({ codeId, day, accountId, scans, unique }: DayIncrement): RowOf<ScanDayEntity> {
  return { code_id: codeId, day, account_id: accountId, scans, unique_scans: unique };
}

function hourRow({ codeId, hour, accountId, scans, unique }: HourIncrement): RowOf<ScanHourEntity> {
  return { code_id: codeId, hour: new Date(hour), account_id: accountId, scans, unique_scans: unique };
}

function valueRow({ codeId, accountId, ...counter }: ValueIncrement): RowOf<ScanValueEntity> {
  return { code_id: codeId, account_id: accountId, ...counter };
}

function targetRow({ codeId, accountId, ...counter }: TargetIncrement): RowOf<ScanTargetEntity> {
  return { code_id: codeId, account_id: accountId, ...counter };
}

function totalRow({ codeId, accountId, scans }: TotalIncrement): RowOf<ScanTotalEntity> {
  return { code_id: codeId, account_id: accountId, scans };
}

/**
 * Increments the breakdowns, folding referrers over the daily limit into `other`. The row of the code's day, which this
 * transaction has updated before, blocks other recorders of the same code and day until this transaction ends.
 */
async function incrementValues(tx: PoolClient, increments: readonly ValueIncrement[]): Promise<void> {
  if (increments.length === 0) return;
  const referrers = increments.filter(({ dimension, value }) => dimension === 'referrer' && !WITHOUT_HOST.has(value));
  const excess =
    referrers.length === 0
      ? []
      : await run(tx, findExcessReferrers, [
          ...columnArrays(
            referrers,
            ({ codeId }) => codeId,
            ({ day }) => day,
            ({ value }) => value,
          ),
          [...WITHOUT_HOST],
        ]);
  const rows =
    excess.length === 0 ? increments : foldExcess(increments, new Set(excess.map(({ index }) => referrers[index])));
  await increment(tx, VALUES, rows.map(valueRow));
}

/** Replaces the value of excess increments with `other` and merges increments of the same counter. */
function foldExcess(
  increments: readonly ValueIncrement[],
  excess: ReadonlySet<ValueIncrement | undefined>,
): ValueIncrement[] {
  const folded = new Map<string, ValueIncrement>();
  for (const increment of increments) {
    const value = excess.has(increment) ? 'other' : increment.value;
    const key = `${increment.codeId} ${increment.day} ${increment.dimension} ${value}`;
    const existing = folded.get(key);
    if (existing) existing.scans += increment.scans;
    else folded.set(key, { ...increment, value });
  }
  return [...folded.keys()].sort().map((key) => folded.get(key) as ValueIncrement);
}
