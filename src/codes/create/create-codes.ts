import { DatabaseError, type PoolClient } from 'pg';
import type { DesignJson } from '../../../common/contract/code-json.ts';
import { MAX_TAGS, TOO_MANY_TAGS } from '../../../common/contract/limits.ts';
import { first, run, statement } from '../../../common/postgres/sql.ts';
import type { Account } from '../../access/caller.ts';
import { arrayParameters, arraysOf, copyRows, listed } from '../../db/columns.ts';
import { labelsOf, resolveLabels } from '../../taxonomy/resolve.ts';
import { announceAll } from '../announce.ts';
import { type CodeRow, codeFrom, NEW_COLUMNS, newDynamicRow } from '../code-row.ts';
import { codeLimitReached } from './create-code.ts';
import { newShortCode, SHORT_CODE_ATTEMPTS, shortCodeNotAllocated } from './short-code.ts';

/** A validated dynamic code to create in a batch. */
export interface BatchCode {
  /** UUID. */
  readonly id: string;
  readonly targetUrl: string;
  readonly name: string | null;
  readonly campaignType: string | null;
  /** Id or name, like each of `tags`; a label that can't be applied only causes a warning. */
  readonly folder: string | null;
  readonly tags: readonly string[];
}

/** Properties that all codes of a batch share. */
export interface SharedProperties {
  /** UUID. */
  readonly accountId: string;
  readonly domain: { readonly id: string; readonly hostname: string } | null;
  readonly design: DesignJson;
  /** The time of the transaction. */
  readonly now: Date;
}

/** Skips codes whose short code exists; returns the others. Index: codes_short_code_key. */
const insert = statement<{ id: string }>(
  'codes_insert_many',
  `insert into codes (${listed(NEW_COLUMNS)})
   select * from unnest(${arrayParameters(NEW_COLUMNS)})
   on conflict (short_code) do nothing
   returning id`,
);

const insertTags = statement(
  'codes_insert_tags_many',
  'insert into code_tags (code_id, tag_id) select * from unnest($1::uuid[], $2::uuid[]) as t (code_id, tag_id)',
);

/** Index: code_counts_pkey. */
const reserve = statement<{ used: string; taken: string }>(
  'codes_reserve',
  `update code_counts
   set live = live + case when $3::bigint is null then $2 else greatest(0, least($2, $3 - live)) end
   where account_id = $1
   returning old.live as used, new.live - old.live as taken`,
);

/**
 * Reserves up to `count` codes of the account's limit: counts them as live before they are created, and locks the
 * counter until the transaction ends. Returns how many were reserved. Fails with QR_LIMIT_REACHED when the limit is
 * reached already.
 */
export async function reserveCodes(tx: PoolClient, account: Account, count: number): Promise<number> {
  const row = await first(tx, reserve, [account.id, count, account.codeLimit]);
  if (!row) throw new Error(`account ${account.id} has no code counter`);
  if (account.codeLimit !== null && Number(row.used) >= account.codeLimit) {
    throw codeLimitReached(account.codeLimit, Number(row.used));
  }
  return Number(row.taken);
}

/** Index: code_counts_pkey. */
const incrementListed = statement(
  'codes_increment_listed',
  'update code_counts set listed = listed + $2 where account_id = $1',
);

/**
 * Creates dynamic codes, with as many statements as a single code takes, and announces them. The caller must have
 * reserved them (`reserveCodes`) and counts them afterwards (`countListed`). Returns, by UUID, the warnings of codes to
 * which some label could not be applied.
 * Fails with SHORT_CODE_NOT_ALLOCATED when no free short codes are found.
 */
export async function createCodes(
  tx: PoolClient,
  platformUrl: string,
  shared: SharedProperties,
  codes: readonly BatchCode[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const { accountId: account_id, domain, design, now: created_at } = shared;
  const resolved = await resolveLabels(tx, account_id, {
    folders: codes.flatMap(({ folder }) => folder ?? []),
    tags: codes.flatMap((code) => code.tags),
  });
  const labels: { code: string; tag: string }[] = [];
  const warnings = new Map<string, readonly string[]>();
  const rows = codes.map(({ id, targetUrl: target_url, name, campaignType: campaign_type, ...code }) => {
    const folderResult = labelsOf(resolved.folders, code.folder === null ? [] : [code.folder]);
    const tagResult = labelsOf(resolved.tags, code.tags);
    // The number of tags is only known once ids and names are resolved: both may refer to the same tag.
    const applied = tagResult.labels.slice(0, MAX_TAGS);
    const codeWarnings = [...folderResult.warnings, ...tagResult.warnings];
    if (applied.length < tagResult.labels.length) codeWarnings.push(`${TOO_MANY_TAGS} The others are not applied.`);
    if (codeWarnings.length > 0) warnings.set(id, codeWarnings);
    for (const tag of applied) labels.push({ code: id, tag: tag.id });
    const [folder = null] = folderResult.labels;
    const tags = applied.map(({ name }) => name);
    const short_code = newShortCode();
    return newDynamicRow({
      id,
      account_id,
      short_code,
      target_url,
      name,
      campaign_type,
      domain,
      design,
      folder,
      tags,
      created_at,
    });
  });
  await insertAll(tx, rows);
  if (labels.length > 0) await run(tx, insertTags, [labels.map(({ code }) => code), labels.map(({ tag }) => tag)]);
  await announceAll(
    tx,
    rows,
    (row) => codeFrom(row, platformUrl, 0),
    () => ({ type: 'qr.created' }),
  );
  return warnings;
}

/**
 * Counts created codes in the totals of lists. The last step of a transaction, because it locks the counter until its
 * end.
 */
export async function countListed(tx: PoolClient, accountId: string, codes: number): Promise<void> {
  await run(tx, incrementListed, [accountId, codes]);
}

/**
 * Copies the rows without checking their short codes, because that costs less and duplicates are very rare. When a
 * short code exists already, or occurs twice among the rows, they are inserted with a check of each row instead.
 */
async function insertAll(tx: PoolClient, rows: readonly CodeRow[]): Promise<void> {
  await tx.query('savepoint copying');
  try {
    await copyRows(tx, 'codes', NEW_COLUMNS, rows, (row) => [row]);
  } catch (error) {
    if (!(error instanceof DatabaseError && error.constraint === 'codes_short_code_key')) throw error;
    await tx.query('rollback to savepoint copying');
    await insertChecked(tx, rows);
  }
}

/** Inserts rows; those whose short code exists are inserted again with a new one. */
async function insertChecked(tx: PoolClient, rows: readonly CodeRow[]): Promise<void> {
  let remaining = rows;
  for (let attempt = 0; attempt < SHORT_CODE_ATTEMPTS && remaining.length > 0; attempt++) {
    const inserted = await run(tx, insert, arraysOf(NEW_COLUMNS, remaining));
    const insertedIds = new Set(inserted.map(({ id }) => id));
    remaining = remaining.filter(({ id }) => !insertedIds.has(id));
    for (const row of remaining) row.short_code = newShortCode();
  }
  if (remaining.length > 0) throw shortCodeNotAllocated();
}
