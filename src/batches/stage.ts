import type { HandlerContext } from '@connectrpc/connect';
import { raw } from '@mikro-orm/core';
import type { PoolClient } from 'pg';
import { isLonger } from '../../common/codes/is-longer.ts';
import { MAX_URL_CHARACTERS } from '../../common/codes/web-address.ts';
import { designJson } from '../../common/contract/code-json.ts';
import { failure } from '../../common/contract/errors.ts';
import { newUuid } from '../../common/contract/ids.ts';
import { MAX_ROWS, tooManyRows } from '../../common/contract/limits.ts';
import { run, statement } from '../../common/postgres/sql.ts';
import type { CreateBatchRequest } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { accountOf } from '../access/caller.ts';
import { chargeQuota, costOfRows } from '../access/usage.ts';
import { reserveCodes } from '../codes/create/create-codes.ts';
import type { IsPlatformHost } from '../codes/fields/platform-hosts.ts';
import { copyRows } from '../db/columns.ts';
import type { Database } from '../db/database.ts';
import { entityManagerIn } from '../db/orm-transaction.ts';
import { excerpt, excerptStillInvalid, expectStorable, MAX_REASON } from '../db/storable.ts';
import { domainForPrinting, FOR_A_BATCH } from '../domains/for-printing.ts';
import { bulkCompleted } from '../events/events.ts';
import { isCompleted } from '../jobs/progress.ts';
import { batchMessage } from './batch-message.ts';
import { BATCH_ROW_COLUMNS, BatchEntity, type BatchRowRecord } from './entities.ts';
import { type ValidatedRow, validateRows } from './validate-rows.ts';

/** Index: batch_rows_pkey. */
const skipRows = statement(
  'batches_skip_rows',
  `update batch_rows set code_id = null, outcome = 'skipped', reason = $3
   where batch_id = $1 and index >= $2 and outcome is null`,
);

/**
 * Why rows are skipped, as a sentence. The dashboard shows it in the reader's language: see
 * `dashboard/app/messages/de/row-sentences.ts`.
 */
export function skipReason(codeLimit: number | null): string {
  return `The account's limit of ${codeLimit} QR codes is reached; delete some or change the plan.`;
}

/** Rows of one COPY. */
const ROWS_A_COPY = 5_000;

/**
 * Validates and stores every row, counts the codes to create towards the account's limit, and charges the batch's cost
 * to the quota, all in the transaction of `tx`. The rows that other requests contend for, counter and meter, are locked
 * last. Every statement runs on `tx`: otherwise as many batches as the pool has connections would each wait for a
 * second one.
 */
export async function stage(
  { database, isPlatformHost }: { database: Database; isPlatformHost: IsPlatformHost },
  tx: PoolClient,
  context: HandlerContext,
  request: CreateBatchRequest,
): Promise<BatchEntity> {
  const account = accountOf(context);
  const { rows, name, domainId, design } = request;
  if (rows.length > MAX_ROWS) throw failure('TOO_MANY_ROWS', tooManyRows(rows.length));
  expectStorable({ name });
  const domain = domainId === undefined ? null : await domainForPrinting(tx, account.id, domainId, FOR_A_BATCH);
  if (rows.length > account.batchLimit) {
    const message = `A batch of this account may have at most ${account.batchLimit} rows, this one has ${rows.length}.`;
    throw failure('BATCH_LIMIT_EXCEEDED', message);
  }

  const validated = await validateRows(tx, isPlatformHost, account.id, rows);
  const validRows = validated.flatMap(({ codeId }, index) => (codeId === null ? [] : index));
  const em = entityManagerIn(database.orm, tx);
  const batch = em.create(BatchEntity, {
    id: newUuid(),
    accountId: account.id,
    name: name || null,
    domainId: domain?.id ?? null,
    hostname: domain?.hostname ?? null,
    ...designJson(design),
    total: rows.length,
    failed: rows.length - validRows.length,
    skipped: 0,
    completedAt: null,
  });
  await em.flush();
  for (let start = 0; start < validated.length; start += ROWS_A_COPY)
    await storeRows(tx, batch.id, start, validated.slice(start, start + ROWS_A_COPY));

  const reserved = await reserveCodes(tx, account, validRows.length);
  const firstSkipped = validRows[reserved];
  if (firstSkipped !== undefined) {
    await run(tx, skipRows, [batch.id, firstSkipped, skipReason(account.codeLimit)]);
  }
  batch.skipped = validRows.length - reserved;
  // A batch in which no code can be created is completed at once.
  if (reserved === 0) batch.completedAt = raw<Date>('now()');
  await em.flush();
  if (isCompleted(batch)) await bulkCompleted(tx, account.id, batchMessage(batch));
  await chargeQuota(tx, context, costOfRows(rows.length) - 1);
  return batch;
}

function storeRows(tx: PoolClient, batchId: string, start: number, rows: readonly ValidatedRow[]): Promise<void> {
  let index = start;
  return copyRows(tx, 'batch_rows', BATCH_ROW_COLUMNS, rows, (row) => [recordOf(batchId, index++, row)]);
}

function recordOf(
  batch_id: string,
  index: number,
  { input, folder, tags, codeId, problem }: ValidatedRow,
): BatchRowRecord {
  const isValid = codeId !== null;
  const kept = (text: string | undefined) => (isValid ? (text ?? null) : excerpt(text));
  return {
    batch_id,
    index,
    target_url: input.targetUrl === undefined ? null : storedUrl(input.targetUrl, isValid),
    name: kept(input.name),
    campaign_type: kept(input.campaignType),
    folder,
    tags: [...tags],
    external_ref: kept(input.externalRef),
    code_id: codeId,
    outcome: problem === null ? null : 'failed',
    // It may quote what was sent.
    reason: excerpt(problem, MAX_REASON),
    warnings: null,
  };
}

/** A target as it is stored. One that is valid may have any number of spaces around it. */
function storedUrl(sent: string, isValid: boolean): string {
  const url = isLonger(sent, MAX_URL_CHARACTERS) ? sent.trim() : sent;
  return isValid ? url : excerptStillInvalid(url, MAX_URL_CHARACTERS);
}
