import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { accountOfRow } from '../access/entities.ts';

/** Unicode's full case folding of an SQL expression, in any database, whatever its own collation. */
export const caseFolded = (text: string) => `casefold(${text} collate "pg_unicode_fast")`;

/**
 * The SQL expression by which names are compared: in NFC and after Unicode's full case folding, so that `Straße` equals
 * `STRASSE` and `ΟΔΟΣ` equals `οδος`. `name` is an SQL expression. Source: docs/contract.md, "The QR code resource".
 */
export const folded = (name: string) => `normalize(${caseFolded(`normalize(${name}, nfc)`)}, nfc)`;

const labelProperties = (table: string) => ({
  id: p.uuid().primary(),
  accountId: accountOfRow(table),
  /** In the spelling first used; `folded` is unique within the account. */
  name: p.text(),
  createdAt: p.datetime().defaultRaw('now()'),
});

/** A folder of codes; a code is in at most one. */
export const FolderEntity = defineEntity({
  name: 'Folder',
  tableName: 'folders',
  properties: labelProperties('folders'),
  indexes: [
    {
      name: 'folders_name',
      expression: `create unique index folders_name on folders (account_id, (${folded('name')}))`,
    },
  ],
});

/** A tag; codes can have several. */
export const TagEntity = defineEntity({
  name: 'Tag',
  tableName: 'tags',
  properties: labelProperties('tags'),
  indexes: [
    {
      name: 'tags_name',
      expression: `create unique index tags_name on tags (account_id, (${folded('name')}))`,
    },
  ],
});

export type LabelEntity = InferEntity<typeof FolderEntity>;

/** The assignment of a tag to a code. */
export const CodeTagEntity = defineEntity({
  name: 'CodeTag',
  tableName: 'code_tags',
  properties: {
    codeId: p.uuid().primary(),
    tagId: p.manyToOne(TagEntity).mapToPk().fieldName('tag_id').foreignKeyName('code_tags_tag_id_fkey').primary(),
  },
  indexes: [{ name: 'code_tags_by_tag', properties: ['tagId', 'codeId'] }],
});
