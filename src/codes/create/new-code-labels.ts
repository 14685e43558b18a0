import type { PoolClient } from 'pg';
import { run, statement } from '../../../common/postgres/sql.ts';
import type { Label } from '../../taxonomy/label-kinds.ts';
import { labelsOf, resolveLabels } from '../../taxonomy/resolve.ts';
import { expectAllowedTagCount } from '../fields/tags.ts';

/** The folder and tags of a new code, with a warning for each reference that can't be applied. */
export interface NewCodeLabels {
  readonly folder: Label | null;
  readonly tags: readonly Label[];
  readonly warnings: readonly string[];
}

/**
 * Resolves the labels of a new code; unknown names are created. `accountId`: UUID. `requested`: ids or names, the tags
 * as `tagsOrFailure` returns them. Fails with INVALID_FIELD for more tags than a code can have.
 */
export async function resolveNewCodeLabels(
  tx: PoolClient,
  accountId: string,
  requested: { readonly folder: string | undefined; readonly tags: readonly string[] },
): Promise<NewCodeLabels> {
  const folders = requested.folder === undefined ? [] : [requested.folder];
  const resolved = await resolveLabels(tx, accountId, { folders, tags: requested.tags });
  const folderResult = labelsOf(resolved.folders, folders);
  const tagResult = labelsOf(resolved.tags, requested.tags);
  expectAllowedTagCount(tagResult.labels);
  const [folder = null] = folderResult.labels;
  return { folder, tags: tagResult.labels, warnings: [...folderResult.warnings, ...tagResult.warnings] };
}

const insert = statement(
  'codes_insert_tags',
  `insert into code_tags (code_id, tag_id) select $1, id from unnest($2::uuid[]) as t (id)`,
);

/** Applies tags to a code that has none yet. `codeId`: UUID. */
export async function insertTags(tx: PoolClient, codeId: string, tags: readonly Label[]): Promise<void> {
  if (tags.length > 0) await run(tx, insert, [codeId, tags.map(({ id }) => id)]);
}
