import { first, promptStatement, type Queryable, run, statement } from '../../common/postgres/sql.ts';
import { OperatorError } from '../../common/runtime/operator-error.ts';
import { migrations } from './migrations/index.ts';

/**
 * The oldest release that can work with the schema, by its last migration. Raise it with a migration after which older
 * cores would fail or lose something; until then they can be restarted, or started again if an upgrade goes wrong.
 */
export const OLDEST_RELEASE = 18;

/** The start of the comment that records it on the table of migrations. */
const COMMENT = 'oldest release: ';

const tableExists = statement<{ exists: boolean }>(
  'db_migrations_exist',
  `select to_regclass('migrations') is not null as exists`,
);

const readSchema = statement<{ last: string; comment: string | null }>(
  'db_read_schema',
  `select max(name) as last, obj_description('migrations'::regclass) as comment from migrations`,
);

const readCreation = promptStatement<{ created_ms: number }>(
  'db_read_creation',
  'select floor(extract(epoch from min(executed_at)) * 1000)::float8 as created_ms from migrations',
);

/** When the first table was created, by Postgres's clock, in ms since 1970; a restore does not change it. */
export async function databaseCreatedAt(on: Queryable): Promise<number> {
  const row = await first(on, readCreation);
  if (!row) throw new Error('the aggregate query returned no row');
  return row.created_ms;
}

/** How a schema relates to this release: it has to be migrated, is as needed, or is newer and usable. */
export type SchemaState = 'older' | 'current' | 'newer';

/** Compares the schema with this release. Fails with an `OperatorError` if it is newer and unusable. */
export async function schemaState(on: Queryable): Promise<SchemaState> {
  if (!(await first(on, tableExists, []))?.exists) return 'older';
  const { last, comment } = (await first(on, readSchema, [])) ?? { last: null, comment: null };
  const [applied, own] = [numberOf(last ?? ''), numberOf(migrations.at(-1)?.name ?? '')];
  if (applied <= own) return applied < own ? 'older' : 'current';
  if (Number(comment?.replace(COMMENT, '')) <= own) return 'newer';
  throw new OperatorError(
    `The schema is that of a newer release (${last}), which this one (${migrations.at(-1)?.name}) can't use: start the newer one.`,
  );
}

/** Records which releases can work with the schema. */
export async function recordOldestRelease(on: Queryable): Promise<void> {
  // Not prepared: a comment takes no parameters.
  await run(on, statement('db_record_release', `comment on table migrations is '${COMMENT}${OLDEST_RELEASE}'`), []);
}

function numberOf(migration: string): number {
  return Number.parseInt(migration, 10) || 0;
}
