import { type EntitySchema, type Opt, Type, UnderscoreNamingStrategy } from '@mikro-orm/core';
import { PostgreSqlPlatform } from '@mikro-orm/postgresql';
import type { PoolClient } from 'pg';
import { BinaryRows } from './binary-rows.ts';

/** A column of an entity's table, for statements in SQL. */
export interface Column {
  readonly name: string;
  /** Postgres's name of the type, such as `timestamptz`. */
  readonly type: string;
  readonly nullable: boolean;
}

/** `campaignType` becomes `campaign_type`. */
type Snake<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${Snake<Rest>}`
  : Name;

/** A row of an entity's table as statements return it: columns by name, none of them undefined. */
export type RowOf<Entity> = {
  -readonly [Property in keyof Entity & string as Snake<Property>]: Plain<Exclude<Entity[Property], undefined>>;
};

type Plain<Value> = Value extends Opt<infer Inner> ? Inner : Value;

const naming = new UnderscoreNamingStrategy();
const platform = new PostgreSqlPlatform();

/** A property in an entity's definition. */
interface Property {
  readonly fieldName?: string;
  readonly columnType?: string;
  readonly nativeEnumName?: string;
  readonly nullable?: boolean;
  /** Only set on references to other entities. */
  readonly kind?: string;
  readonly type: Type | (new () => Type);
}

/** The columns of an entity's table, in the order of its definition. */
export function columnsOf(entity: EntitySchema): Column[] {
  return Object.entries(entity.properties as unknown as Record<string, Property>).map(([property, options]) => ({
    name: options.fieldName ?? naming.propertyToColumnName(property),
    // References contain the UUID of the other row: all primary keys that are referenced are UUIDs.
    type: options.columnType ?? options.nativeEnumName ?? (options.kind === undefined ? typeOf(options) : 'uuid'),
    nullable: options.nullable === true,
  }));
}

function typeOf(options: Property): string {
  const type = options.type instanceof Type ? options.type : new options.type();
  return type.getColumnType(options as never, platform);
}

/** The columns as a list in SQL; `of`: the table's alias there. */
export function listed(columns: readonly Column[], of?: string): string {
  return columns.map(({ name }) => (of ? `${of}.${name}` : name)).join(', ');
}

/** Assignments for `on conflict do update` that overwrite the columns with those of the row to insert. */
export function fromExcluded(columns: readonly Column[]): string {
  return columns.map(({ name }) => `${name} = excluded.${name}`).join(', ');
}

/** A placeholder for each column, from `$first` on. */
export function parameters(columns: readonly Column[], first = 1): string {
  return columns.map((_, index) => `$${first + index}`).join(', ');
}

/** The same for many rows: each placeholder is an array of a column's values. */
export function arrayParameters(columns: readonly Column[], first = 1): string {
  return columns.map(({ type }, index) => `$${first + index}::${type}[]`).join(', ');
}

/** The values of a row for `parameters`. */
export function valuesOf(columns: readonly Column[], row: object): unknown[] {
  return columns.map((column) => columnValue(column, row));
}

/** The values of rows for `arrayParameters`. */
export function arraysOf(columns: readonly Column[], rows: readonly object[]): unknown[] {
  return columns.map((column) => rows.map((row) => columnValue(column, row)));
}

function columnValue({ name, type }: Column, row: object): unknown {
  const value = (row as Record<string, unknown>)[name] ?? null;
  return type === 'jsonb' && value !== null ? JSON.stringify(value) : value;
}

/** Writes a value of each type in the binary format of COPY. */
const WRITERS: Record<string, (to: BinaryRows, value: never) => void> = {
  uuid: (to, value: string | null) => to.uuid(value),
  text: (to, value: string | null) => to.text(value),
  jsonb: (to, value: unknown) => (value === null ? to.null() : to.json(JSON.stringify(value))),
  smallint: (to, value: number) => to.smallint(value),
  int: (to, value: number) => to.integer(value),
  bigint: (to, value: bigint | number) => to.bigint(value),
  date: (to, value: string) => to.day(value),
  timestamptz: (to, value: Date) => to.time(value.getTime()),
  scan_dimension: (to, value: string) => to.text(value),
  'text[]': (to, value: readonly string[] | null) => (value === null ? to.null() : to.texts(value)),
  bytea: (to, value: Uint8Array | null) => to.bytes(value),
};

/**
 * Copies the rows of each item into these columns of a table with `BinaryRows.copyEach`. Rows are created while those
 * of the previous items are sent.
 */
export function copyRows<Item, Row extends object>(
  tx: PoolClient,
  table: string,
  columns: readonly Column[],
  items: readonly Item[],
  rowsOf: (item: Item) => readonly Row[],
): Promise<void> {
  const fields = columns.map(({ name, type, nullable }) => {
    const write = WRITERS[type];
    if (!write) throw new Error(`Columns of type ${type} can't be copied: add a writer.`);
    return { name: name as keyof Row, write, nullable };
  });
  return BinaryRows.copyEach(tx, `${table} (${listed(columns)})`, items, (to, item) => {
    for (const row of rowsOf(item)) {
      to.row(fields.length);
      for (const { name, write, nullable } of fields) {
        const value = row[name];
        if (nullable && value === null) to.null();
        else write(to, value as never);
      }
    }
  });
}
