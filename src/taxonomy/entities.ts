import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { accountOfRow } from '../access/entities.ts';

const label = (table: string) => ({
  id: p.uuid().primary(),
  accountId: accountOfRow(table),
  /** Unique in the account without regard to case. */
  name: p.text(),
  createdAt: p.datetime().defaultRaw('now()'),
});

/** A folder that codes are filed in, each in at most one. */
export const FolderEntity = defineEntity({
  name: 'Folder',
  tableName: 'folders',
  properties: label('folders'),
  indexes: [
    {
      name: 'folders_name',
      expression: `create unique index folders_name on folders (account_id, lower(name collate "pg_c_utf8"))`,
    },
  ],
});

/** A tag that codes carry. */
export const TagEntity = defineEntity({
  name: 'Tag',
  tableName: 'tags',
  properties: label('tags'),
  indexes: [
    {
      name: 'tags_name',
      expression: `create unique index tags_name on tags (account_id, lower(name collate "pg_c_utf8"))`,
    },
  ],
});

export type LabelEntity = InferEntity<typeof FolderEntity>;

/** That a code carries a tag. */
export const CodeTagEntity = defineEntity({
  name: 'CodeTag',
  tableName: 'code_tags',
  properties: {
    codeId: p.uuid().primary(),
    tagId: p.manyToOne(TagEntity).mapToPk().fieldName('tag_id').foreignKeyName('code_tags_tag_id_fkey').primary(),
  },
  indexes: [{ name: 'code_tags_by_tag', properties: ['tagId', 'codeId'] }],
});
