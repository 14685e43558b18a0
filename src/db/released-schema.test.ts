import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { expect, inject, test } from 'vitest';
import { afterFile } from '../../test/harness/after-file.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { GATEWAY_ROLE } from './gateway-role.ts';
import { migrations } from './migrations/index.ts';
import { OLDEST_RELEASE } from './schema-version.ts';

/** What statements rely on in a schema. All lists are sorted. */
interface Schema {
  /** The last migration. */
  readonly migration: string;
  /** By `table.column`. `required`: an insert must give a value. */
  readonly columns: Readonly<Record<string, { type: string; nullable: boolean; required: boolean }>>;
  /** Signatures and results. */
  readonly functions: readonly string[];
  /** Unique keys, which `on conflict` names. */
  readonly keys: readonly string[];
  /** What rows must fulfil, by table and definition, with the columns concerned. */
  readonly constraints: Readonly<Record<string, readonly string[]>>;
  /** What gateways may do. */
  readonly grants: readonly string[];
}

/** The schema of the last release, written when it was made: see CONTRIBUTING.md, "Release". */
const FILE = join(import.meta.dirname, 'released-schema.json');

const TABLES = `pg_class t where t.relnamespace = 'public'::regnamespace and t.relkind in ('r', 'p') and not t.relispartition`;

async function readSchema(url: string): Promise<Schema> {
  const client = new pg.Client(url);
  await client.connect();
  const list = async <Row>(text: string) => (await client.query<Row & pg.QueryResultRow>(text)).rows;
  const names = async (text: string) => (await list<{ name: string }>(text)).map(({ name }) => name);
  try {
    const columns = await list<{ name: string; type: string; nullable: boolean; required: boolean }>(
      `select t.relname || '.' || a.attname as name, format_type(a.atttypid, a.atttypmod) as type,
         not a.attnotnull as nullable, a.attnotnull and not a.atthasdef and a.attidentity = '' as required
       from (select t.* from ${TABLES}) t join pg_attribute a on a.attrelid = t.oid
       where a.attnum > 0 and not a.attisdropped order by 1`,
    );
    const constraints = await list<{ name: string; columns: string[] }>(
      `select t.relname || ': ' || pg_get_constraintdef(c.oid) as name,
         array(select t.relname || '.' || attname from pg_attribute where attrelid = t.oid and attnum = any(c.conkey)) as columns
       from (select t.* from ${TABLES}) t join pg_constraint c on c.conrelid = t.oid
       where c.contype in ('c', 'f', 'x') order by 1`,
    );
    return {
      migration: migrations.at(-1)?.name ?? '',
      columns: Object.fromEntries(columns.map(({ name, ...column }) => [name, column])),
      functions: await names(
        `select oid::regprocedure || ' returns ' || pg_get_function_result(oid) as name from pg_proc
         where pronamespace = 'public'::regnamespace and prorettype <> 'trigger'::regtype order by 1`,
      ),
      keys: await names(
        `select t.relname || ' ' || regexp_replace(pg_get_indexdef(i.indexrelid), '^.* USING ', '') as name
         from (select t.* from ${TABLES}) t join pg_index i on i.indrelid = t.oid where i.indisunique order by 1`,
      ),
      constraints: Object.fromEntries(constraints.map(({ name, columns }) => [name, columns.toSorted()])),
      grants: await names(
        `select privilege_type || ' ' || table_name || '.' || column_name as name
         from information_schema.column_privileges where grantee = '${GATEWAY_ROLE}'
         union select privilege_type || ' ' || routine_name
         from information_schema.routine_privileges where grantee = '${GATEWAY_ROLE}' order by 1`,
      ),
    };
  } finally {
    await client.end();
  }
}

/** Why programs that know `former` may fail on `current`. */
function problemsOf(former: Schema, current: Schema): string[] {
  const tables = new Set(Object.keys(former.columns).map((name) => name.split('.')[0]));
  const isKnown = (column: string) => Object.hasOwn(former.columns, column);
  return [
    ...Object.entries(former.columns).flatMap(([name, column]) => {
      const now = current.columns[name];
      if (!now) return `column ${name} is gone`;
      if (now.type !== column.type) return `column ${name} has become ${now.type}`;
      if (column.nullable && !now.nullable) return `column ${name} no longer accepts null`;
      return !column.required && now.required ? `column ${name} has lost its default` : [];
    }),
    ...Object.entries(current.columns).flatMap(([name, { required }]) =>
      required && !isKnown(name) && tables.has(name.split('.')[0]) ? `new column ${name} has no default` : [],
    ),
    ...former.functions.flatMap((name) => (current.functions.includes(name) ? [] : `function ${name} is gone`)),
    ...former.keys.flatMap((name) => (current.keys.includes(name) ? [] : `unique key ${name} is gone`)),
    ...Object.entries(current.constraints).flatMap(([name, columns]) =>
      !Object.hasOwn(former.constraints, name) && columns.some(isKnown) ? `new constraint ${name}` : [],
    ),
    ...former.grants.flatMap((name) => (current.grants.includes(name) ? [] : `gateways may no longer ${name}`)),
  ];
}

test('the last release runs on today’s schema', async () => {
  const { url } = await freshDatabase();
  const current = await readSchema(url);
  if (process.env.KEEP_SCHEMA === 'true') writeFileSync(FILE, `${JSON.stringify(current, null, 2)}\n`);
  const released = JSON.parse(readFileSync(FILE, 'utf8')) as Schema;
  expect(OLDEST_RELEASE).toBeLessThanOrEqual(Number.parseInt(released.migration, 10));
  // A server of one's own may lack the role.
  const grants = inject('gatewayUrl') === null ? [] : released.grants;
  expect(problemsOf({ ...released, grants }, current)).toEqual([]);
});

test('a change that the last release can’t work with is recognised', async () => {
  const { url } = await freshDatabase();
  const client = new pg.Client(url);
  await client.connect();
  afterFile(() => client.end());
  const former = await readSchema(url);
  const problemsAfter = async (change: string) => {
    await client.query(change);
    return problemsOf(former, await readSchema(url));
  };
  expect(await problemsAfter('create table added (id int not null); alter table codes add added int')).toEqual([]);
  expect(await problemsAfter('alter table codes add added_too int not null default 0 check (added_too >= 0)')).toEqual(
    [],
  );
  expect(
    await problemsAfter(`alter table accounts rename name to title; alter table codes add needed int not null`),
  ).toEqual([
    'column accounts.name is gone',
    'new column accounts.title has no default',
    'new column codes.needed has no default',
  ]);
  expect(await problemsAfter(`alter table codes add check (target_url <> '')`)).toContain(
    `new constraint codes: CHECK ((target_url <> ''::text))`,
  );
});
