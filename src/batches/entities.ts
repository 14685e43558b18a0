import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { accountOfRow } from '../access/entities.ts';
import { columnsOf, type RowOf } from '../db/columns.ts';

/** A batch: what its rows have in common, and how far it has come. */
export const BatchEntity = defineEntity({
  name: 'Batch',
  tableName: 'batches',
  properties: {
    id: p.uuid().primary(),
    accountId: accountOfRow('batches').deleteRule('cascade'),
    name: p.text().nullable(),
    domainId: p.uuid().nullable(),
    /** The custom domain as it is printed; null means the platform's host. */
    hostname: p.text().nullable(),
    foregroundColor: p.text(),
    backgroundColor: p.text(),
    total: p.integer(),
    failed: p.integer(),
    skipped: p.integer(),
    created: p.integer().default(0),
    /** Rows before this index are final: of those, the ones without an outcome of their own are created. */
    position: p.integer().default(0),
    createdAt: p.datetime().defaultRaw('now()'),
    completedAt: p.datetime().nullable(),
  },
  indexes: [
    { name: 'batches_listed', expression: `create index batches_listed on batches (account_id, id desc)` },
    { name: 'batches_unfinished', properties: ['createdAt'], where: 'completed_at is null' },
  ],
});

export type BatchEntity = InferEntity<typeof BatchEntity>;

/** A row of a batch. What becomes of it follows from its outcome and its batch's position. */
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
    /** The code that it becomes; null when it becomes none. */
    codeId: p.uuid().nullable(),
    /** Why it becomes none. */
    outcome: p.text().$type<'failed' | 'skipped'>().nullable().check(`outcome in ('failed', 'skipped')`),
    reason: p.text().nullable(),
    /** What could not be applied to its code; null when everything was. */
    warnings: p.array().nullable(),
  },
});

/** A row of a batch as statements read and write it. */
export type BatchRowRecord = RowOf<InferEntity<typeof BatchRowEntity>>;

/** The columns of a `BatchRowRecord`. */
export const BATCH_ROW_COLUMNS = columnsOf(BatchRowEntity);
