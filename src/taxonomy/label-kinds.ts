import { type EntitySchema, LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { decodeId } from '../../common/contract/ids.ts';
import { LIMITS } from '../../common/contract/limits.ts';
import { type Statement, statement } from '../../common/postgres/sql.ts';
import { notFound } from '../calls/not-found.ts';
import { FolderEntity, folded, type LabelEntity, TagEntity } from './entities.ts';
import { type ParsedName, parseFolderName, parseTagName } from './names.ts';

/** A folder or tag. `id` is a UUID. */
export interface Label {
  readonly id: string;
  readonly name: string;
}

/** The label that matches a reference. `nth` is the position of the reference in the parameters, from 1. */
export type MatchedLabel = Label & { readonly nth: number };

/** A kind of label. Folders and tags differ only in how codes refer to them. */
export interface LabelKind {
  /** Prefix of ids, and the word used in messages. */
  readonly name: 'folder' | 'tag';
  /** The field of a code that contains labels of this kind, or of a request that adds them. */
  readonly field: 'folder' | 'tags' | 'add_tags';
  /** The name of the account's limit, and of the table. */
  readonly plural: 'folders' | 'tags';
  readonly parseName: (input: string, field?: string) => ParsedName;
  /**
   * Finds labels. Parameters: the account, and two arrays of equal length, the ids (or null) and names of the
   * references.
   */
  readonly find: Statement<MatchedLabel>;
  /** Like `find`, but locks the labels before codes refer to them: a concurrent deletion waits for this transaction. */
  readonly findAndLock: Statement<MatchedLabel>;
  /**
   * Creates labels in the order of their names, as far as the account's limit allows. Parameters: the account, the new
   * ids and the names. A label that another transaction has created meanwhile is returned too, and locked. The caller
   * must hold the lock of the account.
   */
  readonly create: Statement<MatchedLabel>;
  readonly entity: EntitySchema<LabelEntity>;
}

/**
 * Names are found by an array, for which even a sequential scan folds each label once. Compared one by one, thousands
 * of names took minutes by a plan from when there were few labels. With `is true`, ids are not sought among all labels
 * of the account. Indexes of each statement: folders_pkey, folders_name; tags_pkey, tags_name.
 */
function labelKind(
  name: LabelKind['name'],
  field: LabelKind['field'],
  parseName: LabelKind['parseName'],
  entity: EntitySchema,
): LabelKind {
  const labels = `${name}s` as const;
  const findWith = (lock: string) => `
    with sought as materialized (
      select id, nth, ${folded('name')} as folded
      from unnest($2::uuid[], $3::text[]) with ordinality as t (id, name, nth)
    ), known as materialized (
      select id, name, ${folded('name')} as folded from ${labels}
      where (account_id = $1) is true and id = any(array(
        select id from sought where id is not null
        union
        select id from ${labels} where account_id = $1 and ${folded('name')} = any(array(select folded from sought))))
      order by id ${lock}
    )
    select nth::integer, coalesce(i.id, n.id) as id, coalesce(i.name, n.name) as name
    from sought left join known i on i.id = sought.id left join known n on n.folded = sought.folded
    where coalesce(i.id, n.id) is not null`;
  return {
    name,
    field,
    plural: labels,
    parseName,
    find: statement(`taxonomy_find_${labels}`, findWith('')),
    findAndLock: statement(`taxonomy_keep_${labels}`, findWith('for key share')),
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

export const FOLDER = labelKind('folder', 'folder', parseFolderName, FolderEntity);
export const TAG = labelKind('tag', 'tags', parseTagName, TagEntity);

/**
 * Locks labels of the account, so that no other transaction can assign them to codes until this one ends. Returns them
 * in the order of `ids`. Every transaction locks labels in the order of their UUIDs, so that two cannot deadlock. Fails
 * with NOT_FOUND. `accountId`: UUID.
 */
export async function lockLabels<const Ids extends readonly string[]>(
  em: EntityManager,
  { name, entity }: LabelKind,
  accountId: string,
  ids: Ids,
): Promise<{ [Index in keyof Ids]: LabelEntity }> {
  const uuids = ids.flatMap((id) => decodeId(name, id) ?? []);
  const lock = { lockMode: LockMode.PESSIMISTIC_WRITE, orderBy: { id: 'asc' } } as const;
  const found = await em.find(entity, { accountId, id: { $in: uuids } }, lock);
  const locked = uuids.flatMap((uuid) => found.find(({ id }) => id === uuid) ?? []);
  if (locked.length !== ids.length) throw notFound(name);
  return locked as { [Index in keyof Ids]: LabelEntity };
}
