import type { PoolClient } from 'pg';
import { failure } from '../../../common/contract/errors.ts';
import { MAX_TAGS, TOO_MANY_TAGS } from '../../../common/contract/limits.ts';
import { run, statement } from '../../../common/postgres/sql.ts';
import { type UpdateCodesRequest, UpdateOutcome } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import type { Label } from '../../taxonomy/label-kinds.ts';
import { isUnfiled } from '../../taxonomy/names.ts';
import { existingTags, resolveLabels } from '../../taxonomy/resolve.ts';
import { announceCurrent } from '../announce.ts';
import { CHANGED, type CodeRowWithoutContent } from '../code-row.ts';
import { expectAllowedTagCount, tagsOrFailure } from '../fields/tags.ts';
import type { UpdateResult } from '../update-result.ts';
import { labelsOrFailure } from './update-code.ts';

/** The same changes of the fields of many codes. */
export interface FieldChanges {
  readonly paused: boolean | undefined;
  /** Null removes codes from their folder. */
  readonly folder: Label | null | undefined;
  readonly addTags: readonly Label[];
  readonly removeTags: readonly Label[];
}

/** Index: codes_pkey. */
const update = statement(
  'codes_update_all',
  `update codes set paused = coalesce($3, paused), folder_id = case when $4 then $5::uuid else folder_id end, ${CHANGED}
   where account_id = $1 and id = any($2::uuid[])`,
);

/** Index: code_tags_pkey. */
const changeTags = statement(
  'codes_change_tags',
  `with dropped as (
     delete from code_tags where code_id = any($1::uuid[]) and tag_id = any($3::uuid[])
   )
   insert into code_tags (code_id, tag_id)
   select code_id, tag_id from unnest($1::uuid[]) as code_id, unnest($2::uuid[]) as tag_id on conflict do nothing`,
);

/** Validates the changes and resolves and locks their labels. `accountId`: UUID. Fails with INVALID_FIELD. */
export async function readFieldChanges(
  tx: PoolClient,
  accountId: string,
  { paused, folder, addTags, removeTags }: UpdateCodesRequest,
): Promise<FieldChanges> {
  const added = tagsOrFailure(addTags, 'add_tags');
  const folders = folder === undefined || isUnfiled(folder) ? [] : [folder];
  // All at once, in the order of their ids, so that a merge of two of them cannot deadlock with this transaction.
  const resolved = await resolveLabels(tx, accountId, {
    folders,
    tags: added,
    tagsField: 'add_tags',
    otherTags: removeTags,
  });
  const [into = null] = labelsOrFailure(resolved.folders, folders);
  const add = labelsOrFailure(resolved.tags, added);
  expectAllowedTagCount(add, 'add_tags');
  const remove = await existingTags(tx, accountId, removeTags);
  const both = remove.find(({ id }) => add.some((tag) => tag.id === id));
  if (both) throw failure('INVALID_FIELD', `remove_tags: add_tags contains ${both.name} too.`);
  return { paused, folder: folder === undefined ? undefined : into, addTags: add, removeTags: remove };
}

/**
 * Changes codes that the transaction has locked and that are not deleted, and announces those that differ. Returns the
 * results by UUID: a code that would have too many tags is refused.
 */
export async function changeFields(
  tx: PoolClient,
  platformUrl: string,
  accountId: string,
  rows: readonly CodeRowWithoutContent[],
  changes: FieldChanges,
): Promise<ReadonlyMap<string, UpdateResult>> {
  const results = new Map<string, UpdateResult>();
  const changed = new Map<string, string[]>();
  for (const row of rows) {
    const tags = tagsAfter(row, changes);
    const fields = changedFields(row, tags, changes);
    if (fields.includes('tags') && tags.size > MAX_TAGS) {
      results.set(row.id, { outcome: UpdateOutcome.REFUSED, reason: 'INVALID_FIELD', message: TOO_MANY_TAGS });
    } else if (fields.length === 0) {
      results.set(row.id, { outcome: UpdateOutcome.UNCHANGED });
    } else {
      changed.set(row.id, fields);
      results.set(row.id, { outcome: UpdateOutcome.CHANGED });
    }
  }
  if (changed.size === 0) return results;

  const ids = [...changed.keys()];
  const { paused, folder, addTags, removeTags } = changes;
  if (addTags.length > 0 || removeTags.length > 0) await run(tx, changeTags, [ids, idsOf(addTags), idsOf(removeTags)]);
  await run(tx, update, [accountId, ids, paused ?? null, folder !== undefined, folder?.id ?? null]);
  await announceCurrent(tx, platformUrl, accountId, ids, ({ id }) => ({
    type: 'qr.updated',
    changed: changed.get(id) ?? [],
  }));
  return results;
}

/** The names of a code's tags after the changes. */
function tagsAfter({ tags }: CodeRowWithoutContent, { addTags, removeTags }: FieldChanges): ReadonlySet<string> {
  const remaining = new Set(tags).difference(new Set(removeTags.map(({ name }) => name)));
  return remaining.union(new Set(addTags.map(({ name }) => name)));
}

/** The fields that the event of a code names, as after `updateCode`. */
function changedFields(
  row: CodeRowWithoutContent,
  tags: ReadonlySet<string>,
  { paused, folder }: FieldChanges,
): string[] {
  return [
    ...(paused !== undefined && paused !== row.paused ? ['paused'] : []),
    ...(folder !== undefined && (folder?.id ?? null) !== row.folder_id ? ['folder'] : []),
    ...(new Set(row.tags).symmetricDifference(tags).size > 0 ? ['tags'] : []),
  ];
}

const idsOf = (labels: readonly Label[]) => labels.map(({ id }) => id);
