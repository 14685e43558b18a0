import { decodeId } from '../../../common/contract/ids.ts';
import type { CodeTypeName } from '../../../common/contract/names.ts';
import { type Queryable, run, type Statement, statement } from '../../../common/postgres/sql.ts';
import type { ReadRow, Reference } from './read-rows.ts';

/** The code that a row names. */
export interface FoundCode {
  /** UUID. */
  readonly id: string;
  readonly type: CodeTypeName;
  readonly target_version: number;
}

/** A code by its reference. Of an external reference that several codes have, there are several. */
type CodeByReference = FoundCode & { readonly reference: string };

const COLUMNS = 'c.id, c.type, c.target_version';

/**
 * Statements that find codes of account $1 by their references $2. From the sixth time on, a connection uses a plan
 * that does not know $2. In such a plan, `= any($2)` that no index carries compares a column to one element after the
 * other: for 25,000 references that took 4 s instead of 0.05.
 */
const STATEMENTS: Readonly<Record<Reference['kind'], Statement<CodeByReference>>> = {
  /** By UUID. Index: codes_pkey. */
  id: statement(
    'target_changes_find_by_id',
    `select c.id as reference, ${COLUMNS} from codes c
     where c.account_id = $1 and c.id = any($2::uuid[]) and c.deleted_at is null`,
  ),
  /** Index: codes_short_code_key, whatever the statistics are: `offset 0` keeps the look-ups apart. */
  short_code: statement(
    'target_changes_find_by_short_code',
    `select n.reference, ${COLUMNS}
     from unnest($2::text[]) as n (reference)
     cross join lateral (select * from codes where short_code = n.reference offset 0) c
     where c.account_id = $1 and c.deleted_at is null`,
  ),
  /**
   * Reads all rows of the account's batches, and only these: a join could read those of all accounts. An index would
   * take more of every batch than the third of a second that it saves here for a million rows. `is true` makes Postgres
   * hash the references. Of a reference that many codes have, the first two are enough. Indexes: batches_listed,
   * batch_rows_pkey, codes_pkey.
   */
  external_ref: statement(
    'target_changes_find_by_external_ref',
    `with named as materialized (
       select b.account_id, r.*
       from batches b
       cross join lateral (
         select external_ref, code_id from batch_rows
         where batch_id = b.id and (external_ref in (select unnest($2::text[]))) is true offset 0
       ) r
       where b.account_id = $1
     )
     select * from (
       select n.external_ref as reference, ${COLUMNS}, row_number() over (partition by n.external_ref) as nth
       from named n join codes c on c.account_id = n.account_id and c.id = n.code_id and c.deleted_at is null
     ) as found where nth <= 2`,
  ),
};

/**
 * Why a row's code can't be changed, as sentences. The dashboard shows them in the reader's language: see
 * `dashboard/app/messages/de/row-sentences.ts`.
 */
export const CODE_PROBLEMS = {
  id: 'id: there is no such code on this account.',
  short_code: 'short_code: there is no such code on this account.',
  external_ref: 'external_ref: no code of this account was created with this reference.',
  several: 'external_ref: several codes were created with this reference; name the code by id or short_code.',
  notDynamic: 'Only dynamic codes have a target.',
  repeated: 'An earlier row already changes this code.',
  deleted: 'The code was deleted before its target was changed.',
} as const satisfies Readonly<Record<Reference['kind'], string>> & Readonly<Record<string, string>>;

/** The code of a row, or a sentence that says why there is none that it can change; the code if it was found. */
export type CodeOfRow = { readonly problem: string; readonly code?: FoundCode } | { readonly code: FoundCode };

/** Finds the code of each row that is valid by itself, in order. `accountId`: UUID. */
export async function findCodes(on: Queryable, accountId: string, rows: readonly ReadRow[]): Promise<CodeOfRow[]> {
  const references = rows.flatMap(({ reference, problem }) => (reference && problem === undefined ? reference : []));
  const found = new Map<Reference['kind'], Map<string, CodeByReference[]>>();
  for (const [kind, ofKind] of Map.groupBy(references, (reference) => reference.kind)) {
    const keys = [...new Set(ofKind.flatMap((reference) => keyOf(reference) ?? []))];
    const codes = await run(on, STATEMENTS[kind], [accountId, keys]);
    found.set(
      kind,
      Map.groupBy(codes, (code) => code.reference),
    );
  }
  const named = new Set<string>();
  return rows.map(({ reference, problem }) => {
    if (!reference || problem !== undefined) return { problem: problem ?? '' };
    const [code, another] = found.get(reference.kind)?.get(keyOf(reference) ?? '') ?? [];
    if (!code) return { problem: CODE_PROBLEMS[reference.kind] };
    if (another) return { problem: CODE_PROBLEMS.several };
    if (code.type !== 'dynamic') return { problem: CODE_PROBLEMS.notDynamic, code };
    if (named.has(code.id)) return { problem: CODE_PROBLEMS.repeated, code };
    named.add(code.id);
    return { code };
  });
}

/** The value that the statement takes; undefined if no code can have it. */
function keyOf({ kind, text }: Reference): string | undefined {
  return kind === 'id' ? decodeId('qr', text) : text;
}
