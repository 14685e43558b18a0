import { type EntitySchema, LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { failure } from '../../common/contract/errors.ts';
import { decodeId } from '../../common/contract/ids.ts';
import { LIMITS } from '../../common/contract/limits.ts';
import { type Statement, statement } from '../../common/postgres/sql.ts';
import { FolderEntity, folded, type LabelEntity, TagEntity } from './entities.ts';
import { folderName, type Name, tagName } from './names.ts';

/** A folder or tag as codes refer to it. `id` is a UUID. */
export interface Label {
  readonly id: string;
  readonly name: string;
}

/** The label that the `nth` reference leads to, from 1. */
export type Led = Label & { readonly nth: number };

/** The two kinds of labels: alike in everything but how codes carry them. */
export interface Kind {
  /** Prefix of ids, and the word for people. */
  readonly name: 'folder' | 'tag';
  /** The field of a code that names them. */
  readonly field: 'folder' | 'tags';
  /** What an account has of them, and their table. */
  readonly plural: 'folders' | 'tags';
  readonly nameOf: (input: string, field?: string) => Name;
  /** Labels by ids, or else by names: the `nth` of each goes together. */
  readonly find: Statement<Led>;
  /** The same for who gives them to codes: whoever wants to delete one waits until that has committed. */
  readonly keep: Statement<Led>;
  /**
   * The names, with the ids for them, as far as the limit allows, the first first; one that another call created in the
   * meantime is given as well, kept. The account has to be locked.
   */
  readonly create: Statement<Led>;
  /** One of them. */
  readonly entity: EntitySchema<LabelEntity>;
}

/** Index, for each of the statements: folders_pkey, folders_name; tags_pkey, tags_name. */
function kind(name: Kind['name'], field: Kind['field'], nameOf: Kind['nameOf'], entity: EntitySchema): Kind {
  const labels = `${name}s` as const;
  const led = (lock: string) => `
    with sought as materialized (
      select id, nth, ${folded('name')} as folded
      from unnest($2::uuid[], $3::text[]) with ordinality as t (id, name, nth)
    ), known as materialized (
      select id, name, ${folded('name')} as folded from ${labels}
      where account_id = $1 and id = any(array(
        select id from sought where id is not null
        union
        select named.id from sought, lateral (
          select id from ${labels} l where l.account_id = $1 and ${folded('l.name')} = sought.folded offset 0
        ) named))
      order by id ${lock}
    )
    select nth::integer, coalesce(i.id, n.id) as id, coalesce(i.name, n.name) as name
    from sought left join known i on i.id = sought.id left join known n on n.folded = sought.folded
    where coalesce(i.id, n.id) is not null`;
  return {
    name,
    field,
    plural: labels,
    nameOf,
    find: statement(`taxonomy_find_${labels}`, led('')),
    keep: statement(`taxonomy_keep_${labels}`, led('for key share')),
    create: statement(
      `taxonomy_create_${labels}`,
      `with wanted as materialized (
         select id, name, nth, ${folded('name')} as folded
         from unnest($2::uuid[], $3::text[]) with ordinality as t (id, name, nth)
       ), judged as (
         select id, name, known, row_number() over (partition by known order by nth) as place
         from (select distinct on (folded) id, name, nth,
                 exists (select from ${labels} l where l.account_id = $1 and ${folded('l.name')} = folded) as known
               from wanted order by folded, nth) each
       ), created as (
         insert into ${labels} (id, account_id, name)
         select id, $1::uuid, name from judged
         where known or place <= ${LIMITS[labels]} - (
           select count(*) from (select from ${labels} where account_id = $1 limit ${LIMITS[labels]}) present)
         on conflict (account_id, (${folded('name')})) do update set name = ${labels}.name returning id, name
       )
       select nth::integer, created.id, created.name
       from wanted join created on ${folded('created.name')} = folded`,
    ),
    entity: entity as EntitySchema<LabelEntity>,
  };
}

export const FOLDER = kind('folder', 'folder', folderName, FolderEntity);
export const TAG = kind('tag', 'tags', tagName, TagEntity);

/**
 * Locks labels of the account, so that no code can be given one of them until the transaction ends; gives them in the
 * order of `ids`. They are locked in the order of their UUIDs, in all transactions, so that two of them never wait for
 * each other in a circle. Fails with NOT_FOUND. `accountId`: UUID.
 */
export async function lockLabels<const Ids extends readonly string[]>(
  em: EntityManager,
  { name, entity }: Kind,
  accountId: string,
  ids: Ids,
): Promise<{ [Index in keyof Ids]: LabelEntity }> {
  const uuids = ids.flatMap((id) => decodeId(name, id) ?? []);
  const lock = { lockMode: LockMode.PESSIMISTIC_WRITE, orderBy: { id: 'asc' } } as const;
  const found = await em.find(entity, { accountId, id: { $in: uuids } }, lock);
  const locked = uuids.flatMap((uuid) => found.find(({ id }) => id === uuid) ?? []);
  if (locked.length !== ids.length) throw failure('NOT_FOUND', `There is no such ${name} on this account.`);
  return locked as { [Index in keyof Ids]: LabelEntity };
}
