import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { accountOfRow } from '../access/entities.ts';

/**
 * The SQL expression of a name as it is compared: NFC, and Unicode's full case folding, by which `Straße` is `STRASSE` and
 * `ΟΔΟΣ` is `οδος`. Source: docs/contract.md, "The QR code resource".
 */
export const folded = (name: string) => `normalize(casefold(normalize(${name}, nfc) collate "pg_unicode_fast"), nfc)`;

const label = (table: string) => ({
  id: p.uuid().primary(),
  accountId: accountOfRow(table),
  /** In the spelling first used; unique in the account by `folded`. */
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
      expression: `create unique index folders_name on folders (account_id, (${folded('name')}))`,
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
      expression: `create unique index tags_name on tags (account_id, (${folded('name')}))`,
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
