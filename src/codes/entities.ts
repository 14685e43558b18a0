import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import type { CodeTypeName } from '../../common/contract/names.ts';
import { accountOfRow } from '../access/entities.ts';
import { FolderEntity } from '../taxonomy/entities.ts';

/** A code. Rows are never removed, so that the short codes of deleted codes are never assigned again. */
export const CodeEntity = defineEntity({
  name: 'Code',
  tableName: 'codes',
  properties: {
    accountId: accountOfRow('codes').primary(),
    id: p.uuid().primary(),
    type: p.text().$type<CodeTypeName>().check(`type in ('dynamic', 'static', 'landing_page')`),
    shortCode: p.text().collation('C').unique('codes_short_code_key'),
    targetUrl: p.text().nullable(),
    /** What precedes the target: a `Policy` in protobuf's JSON form. */
    policy: p.json<unknown>().nullable(),
    /** Incremented when the target URL or the policy changes. Index into `target_versions` from the first change on. */
    targetVersion: p.integer().default(1),
    payload: p.text().nullable(),
    /** A `LandingPage` in protobuf's JSON form. */
    landingPage: p.json<unknown>().nullable(),
    name: p.text().nullable(),
    paused: p.boolean().default(false),
    folderId: p
      .manyToOne(FolderEntity)
      .mapToPk()
      .fieldName('folder_id')
      .foreignKeyName('codes_folder_id_fkey')
      .deleteRule('no action')
      .nullable(),
    campaignType: p.text().nullable(),
    /** Without a foreign key: a domain may be removed although codes with its hostname have been printed. */
    domainId: p.uuid().nullable(),
    /** The custom domain in the printed scan URL; null means the platform's host. */
    hostname: p.text().nullable(),
    foregroundColor: p.text().default('#000000'),
    backgroundColor: p.text().default('#ffffff'),
    /** Incremented by every change; gateways ignore older versions. */
    version: p.bigint('string').defaultRaw('1'),
    createdAt: p.datetime().defaultRaw('now()'),
    updatedAt: p.datetime().defaultRaw('now()'),
    deletedAt: p.datetime().nullable(),
  },
  indexes: [
    { name: 'codes_listed', properties: ['accountId', 'id'], where: 'deleted_at is null' },
    { name: 'codes_in_folder', properties: ['accountId', 'folderId', 'id'], where: 'deleted_at is null' },
    { name: 'codes_filed', properties: ['folderId'], where: 'folder_id is not null' },
    { name: 'codes_deleted', properties: ['accountId', 'id'], where: 'deleted_at is not null' },
    { name: 'codes_paused', properties: ['accountId', 'id'], where: 'paused and deleted_at is null' },
    {
      name: 'codes_not_dynamic',
      properties: ['accountId', 'type', 'id'],
      where: `type <> 'dynamic' and deleted_at is null`,
    },
  ],
});

export type CodeEntity = InferEntity<typeof CodeEntity>;

/**
 * A version of a code's target. A code whose target was never changed has none: its own columns are version 1. Without
 * a foreign key: checking it took a quarter of the time of inserting 25,000 versions, and accounts are never deleted.
 */
export const TargetVersionEntity = defineEntity({
  name: 'TargetVersion',
  tableName: 'target_versions',
  properties: {
    accountId: p.uuid().primary(),
    codeId: p.uuid().primary(),
    version: p.integer().primary(),
    targetUrl: p.text(),
    policy: p.json<unknown>().nullable(),
    /** Empty for version 1. */
    author: p.text(),
    note: p.text(),
    createdAt: p.datetime(),
  },
});

export type TargetVersionEntity = InferEntity<typeof TargetVersionEntity>;

/** A code whose folder or tag was renamed, merged or deleted and that is not announced yet. */
export const RelabelledCodeEntity = defineEntity({
  name: 'RelabelledCode',
  tableName: 'relabelled_codes',
  properties: {
    accountId: accountOfRow('relabelled_codes').primary(),
    codeId: p.uuid().primary(),
    /** Names of the changed fields: `folder`, `tags`. */
    changed: p.array().$type<string[]>(),
  },
});

/** The number of codes of an account, updated in the transaction that creates, deletes or restores one. */
export const CodeCountEntity = defineEntity({
  name: 'CodeCount',
  tableName: 'code_counts',
  properties: {
    accountId: accountOfRow('code_counts').primary(),
    /** Dynamic codes, which plans limit. */
    live: p.bigint('number').defaultRaw('0'),
    /** Codes of any type. */
    listed: p.bigint('number').defaultRaw('0'),
  },
});
