import { decodeId, newUuid } from '../contract/ids.ts';
import { type Queryable, run, statement } from '../db/sql.ts';
import { folderName, type Name, tagName } from './names.ts';
import type { Label } from './resolve.ts';

/** The labels of many references, by reference; those that lead nowhere are not in it. */
export type Labels = ReadonlyMap<string, Label>;

/** Both kinds of labels live in tables of the same shape. */
function kindOf(prefix: 'folder' | 'tag', table: 'folders' | 'tags', check: (name: string) => Name) {
  return {
    prefix,
    check,
    /** The id first, then the name. Indexes: folders_pkey, folders_name; tags_pkey, tags_name. */
    find: statement<{ reference: string } & Label>(
      `taxonomy_find_many_${table}`,
      `select r.reference, l.id, l.name
       from unnest($2::text[], $3::uuid[], $4::text[]) as r (reference, id, name)
       cross join lateral (
         select id, name from ${table}
         where account_id = $1 and (id = r.id or lower(name collate "pg_c_utf8") = lower(r.name collate "pg_c_utf8"))
         order by id = r.id desc nulls last limit 1
       ) as l`,
    ),
    /** Whoever wants to delete one waits until this has committed; by id, the order in which merging locks two. */
    keep: statement<{ id: string }>(
      `taxonomy_keep_many_${table}`,
      `select id from ${table} where id = any($1::uuid[]) order by id for key share`,
    ),
    /** In one order for all transactions, so that two of them never wait for each other in a circle. */
    create: statement(
      `taxonomy_create_many_${table}`,
      `insert into ${table} (id, account_id, name)
       select distinct on (lower(name collate "pg_c_utf8")) id, $2::uuid, name
       from unnest($1::uuid[], $3::text[]) as t (id, name)
       order by lower(name collate "pg_c_utf8")
       on conflict (account_id, lower(name collate "pg_c_utf8")) do update set name = ${table}.name`,
    ),
  };
}

type Kind = ReturnType<typeof kindOf>;

const FOLDERS = kindOf('folder', 'folders', folderName);
const TAGS = kindOf('tag', 'tags', tagName);

/**
 * The folders of ids or names; names not yet used are created, in their first spelling. They stay until the transaction
 * ends.
 */
export function resolveFolders(tx: Queryable, accountId: string, references: Iterable<string>): Promise<Labels> {
  return resolve(tx, FOLDERS, accountId, references);
}

/** The same for tags. */
export function resolveManyTags(tx: Queryable, accountId: string, references: Iterable<string>): Promise<Labels> {
  return resolve(tx, TAGS, accountId, references);
}

async function resolve(tx: Queryable, kind: Kind, accountId: string, references: Iterable<string>): Promise<Labels> {
  const wanted = [...new Set(references)];
  const found = await keepExisting(tx, kind, accountId, wanted);
  const names = wanted.flatMap((reference) => {
    if (found.has(reference)) return [];
    const checked = kind.check(reference);
    return 'name' in checked ? [checked.name] : [];
  });
  if (names.length === 0) return found;
  await run(tx, kind.create, [names.map(newUuid), accountId, names]);
  return keepExisting(tx, kind, accountId, wanted);
}

async function keepExisting(
  tx: Queryable,
  kind: Kind,
  accountId: string,
  references: readonly string[],
): Promise<Labels> {
  if (references.length === 0) return new Map();
  const ids = references.map((reference) => decodeId(kind.prefix, reference) ?? null);
  const names = references.map((reference) => reference.trim());
  const found = await run(tx, kind.find, [accountId, references, ids, names]);
  const kept = new Set((await run(tx, kind.keep, [found.map(({ id }) => id)])).map(({ id }) => id));
  return new Map(found.flatMap(({ reference, id, name }) => (kept.has(id) ? [[reference, { id, name }]] : [])));
}
