import type { HandlerContext } from '@connectrpc/connect';
import type { PoolClient } from 'pg';
import { designJson } from '../../common/contract/code-json.ts';
import { failure } from '../../common/contract/errors.ts';
import { newUuid } from '../../common/contract/ids.ts';
import { MAX_BATCH_ROWS } from '../../common/contract/limits.ts';
import { first, run, statement } from '../../common/postgres/sql.ts';
import type { CreateBatchRequest } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { accountOf } from '../access/caller.ts';
import { chargeQuota, expectQuota } from '../access/usage.ts';
import { takeRoom } from '../codes/create-many.ts';
import type { IsPlatformHost } from '../codes/platform-hosts.ts';
import { BinaryRows } from '../db/binary-rows.ts';
import { domainForPrinting, FOR_A_BATCH } from '../domains/for-printing.ts';
import { bulkCompleted } from '../events/events.ts';
import { BATCH_COLUMNS, type BatchRecord, batchFrom } from './batch-row.ts';
import { type JudgedRow, judge } from './judge.ts';

/** Source: docs/contract.md, "Limits". */
const ROWS_A_REQUEST = 100;

const insertBatch = statement(
  'batches_insert',
  `insert into batches (id, account_id, name, domain_id, hostname, foreground_color, background_color, total, failed,
                        skipped)
   values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0)`,
);

/** Index: batch_rows_pkey. */
const skipRows = statement(
  'batches_skip_rows',
  `update batch_rows set code_id = null, outcome = 'skipped', reason = $3
   where batch_id = $1 and index >= $2 and outcome is null`,
);

/** Index: batches_pkey. A batch of which nothing can be created is complete as soon as it is there. */
const settle = statement<BatchRecord>(
  'batches_settle',
  `update batches
   set skipped = $2, completed_at = case when failed + $2 = total then now() end
   where id = $1
   returning ${BATCH_COLUMNS}`,
);

/** Rows of one statement. */
const SLICE = 5_000;

/**
 * Judges and keeps every row, takes the room that its codes need in the account's limit, and charges what the batch
 * costs: all of it in the transaction of `tx`, or nothing. What locks others out, counter and meter, comes last. Every
 * statement runs on `tx`: as many batches as the pool has connections would otherwise wait for a second one each.
 */
export async function stage(
  { isPlatformHost }: { isPlatformHost: IsPlatformHost },
  tx: PoolClient,
  context: HandlerContext,
  request: CreateBatchRequest,
): Promise<BatchRecord> {
  const account = accountOf(context);
  const { rows, name, domainId, design } = request;
  const cost = Math.ceil(rows.length / ROWS_A_REQUEST);
  expectQuota(context, cost - 1);
  if (rows.length > MAX_BATCH_ROWS) {
    throw failure(
      'TOO_MANY_ROWS',
      `A batch may have at most ${MAX_BATCH_ROWS} rows, this one has ${rows.length}; split it.`,
    );
  }
  const domain = domainId === undefined ? null : await domainForPrinting(tx, account.id, domainId, FOR_A_BATCH);
  if (rows.length > account.batchLimit) {
    const message = `A batch of this account may have at most ${account.batchLimit} rows, this one has ${rows.length}.`;
    throw failure('BATCH_LIMIT_EXCEEDED', message);
  }

  const judged = await judge(tx, isPlatformHost, rows);
  const good = judged.flatMap(({ codeId }, index) => (codeId === null ? [] : index));
  const id = newUuid();
  const { foregroundColor, backgroundColor } = designJson(design);
  await run(tx, insertBatch, [
    id,
    account.id,
    name || null,
    domain?.id ?? null,
    domain?.hostname ?? null,
    foregroundColor,
    backgroundColor,
    rows.length,
    rows.length - good.length,
  ]);
  for (let start = 0; start < judged.length; start += SLICE)
    await keep(tx, id, start, judged.slice(start, start + SLICE));

  const room = await takeRoom(tx, account, good.length);
  const firstSkipped = good[room];
  if (firstSkipped !== undefined) {
    const reason = `The account's limit of ${account.codeLimit} QR codes is reached; delete some or change the plan.`;
    await run(tx, skipRows, [id, firstSkipped, reason]);
  }
  const batch = await first(tx, settle, [id, good.length - room]);
  if (!batch) throw new Error('a batch that was just staged is gone');
  if (batch.completed_at !== null) await bulkCompleted(tx, account.id, batchFrom(batch));
  await chargeQuota(tx, context, cost - 1);
  return batch;
}

const COLUMNS =
  'batch_id, index, target_url, name, campaign_type, folder, tags, external_ref, code_id, outcome, reason';

function keep(tx: PoolClient, batchId: string, start: number, rows: readonly JudgedRow[]): Promise<void> {
  let index = start;
  return BinaryRows.copyEach(tx, `batch_rows (${COLUMNS})`, rows, (to, { input, folder, tags, codeId, problem }) => {
    to.row(11);
    to.uuid(batchId);
    to.integer(index++);
    to.text(kept(input.targetUrl));
    to.text(kept(input.name));
    to.text(kept(input.campaignType));
    to.text(folder);
    to.texts(tags);
    to.text(kept(input.externalRef));
    to.uuid(codeId);
    to.text(problem === null ? null : 'failed');
    to.text(problem);
  });
}

/** The text as it was sent, with a sign in the place of NUL, which Postgres can't keep; such a row fails anyhow. */
function kept(text: string | undefined): string | null {
  return text?.replaceAll('\0', '\u2400') ?? null;
}
