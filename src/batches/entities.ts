import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { accountOfRow } from '../access/entities.ts';
import { columnsOf, type RowOf } from '../db/columns.ts';

/** A batch: the values that its rows share, and its progress. */
export const BatchEntity = defineEntity({
  name: 'Batch',
  tableName: 'batches',
  properties: {
    id: p.uuid().primary(),
    accountId: accountOfRow('batches').deleteRule('cascade'),
    name: p.text().nullable(),
    domainId: p.uuid().nullable(),
    /** The custom domain in the printed codes; null means the platform's host. */
    hostname: p.text().nullable(),
    foregroundColor: p.text(),
    backgroundColor: p.text(),
    total: p.integer(),
    failed: p.integer(),
    skipped: p.integer(),
    created: p.integer().default(0),
    /** Rows before this index are final; those of them without an outcome are created. */
    position: p.integer().default(0),
    createdAt: p.datetime().defaultRaw('now()'),
    completedAt: p.datetime().nullable(),
  },
  indexes: [
    { name: 'batches_listed', expression: `create index batches_listed on batches (account_id, id desc)` },
    { name: 'batches_unfinished', properties: ['accountId', 'id'], where: 'completed_at is null' },
  ],
});

export type BatchEntity = InferEntity<typeof BatchEntity>;

/** A row of a batch. Its status follows from its outcome and its batch's position. */
export const BatchRowEntity = defineEntity({
  name: 'BatchRow',
  tableName: 'batch_rows',
  properties: {
    batchId: p
      .manyToOne(BatchEntity)
      .mapToPk()
      .fieldName('batch_id')
      .foreignKeyName('batch_rows_batch_id_fkey')
      .deleteRule('cascade')
      .primary(),
    index: p.integer().primary(),
    targetUrl: p.text().nullable(),
    name: p.text().nullable(),
    campaignType: p.text().nullable(),
    folder: p.text().nullable(),
    tags: p.array(),
    externalRef: p.text().nullable(),
    /** The code that is created for it; null if none is. */
    codeId: p.uuid().nullable(),
    /** Why no code is created for it; null if one is. */
    outcome: p.text().$type<'failed' | 'skipped'>().nullable().check(`outcome in ('failed', 'skipped')`),
    reason: p.text().nullable(),
    /** What could not be applied to its code; null if everything was. */
    warnings: p.array().nullable(),
  },
});

/** A row of a batch as statements read and write it. */
export type BatchRowRecord = RowOf<InferEntity<typeof BatchRowEntity>>;

/** The columns of a `BatchRowRecord`. */
export const BATCH_ROW_COLUMNS = columnsOf(BatchRowEntity);
