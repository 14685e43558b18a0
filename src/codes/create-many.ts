import { DatabaseError, type PoolClient } from 'pg';
import type { DesignJson } from '../../common/contract/code-json.ts';
import { failure } from '../../common/contract/errors.ts';
import { first, run, statement } from '../../common/postgres/sql.ts';
import type { Account } from '../access/caller.ts';
import { arrayParameters, arraysOf, copyRows, listed } from '../db/columns.ts';
import { FOLDER, TAG } from '../taxonomy/kinds.ts';
import { labelsOf, resolveLabels } from '../taxonomy/resolve.ts';
import { announceAll } from './announce.ts';
import { type CodeRow, codeFrom, NEW_COLUMNS, newDynamicRow } from './code-row.ts';
import { codeLimitReached } from './create-code.ts';
import { newShortCode, SHORT_CODE_ATTEMPTS } from './short-code.ts';
import { MAX_TAGS, TOO_MANY_TAGS } from './tags.ts';

/** A dynamic code to create, known to be right. */
export interface WantedCode {
  /** UUID. */
  readonly id: string;
  readonly targetUrl: string;
  readonly name: string | null;
  readonly campaignType: string | null;
  /** Ids or names, as `tags`; one that leads to no label costs the label only, with a warning. */
  readonly folder: string | null;
  readonly tags: readonly string[];
}

/** What codes that are created together have in common. */
export interface Together {
  /** UUID. */
  readonly accountId: string;
  readonly domain: { readonly id: string; readonly hostname: string } | null;
  readonly design: DesignJson;
  /** The time of the transaction. */
  readonly now: Date;
}

/** Index: codes_short_code_key. A code whose short code is taken is not in the answer. */
const insert = statement<{ id: string }>(
  'codes_insert_many',
  `insert into codes (${listed(NEW_COLUMNS)})
   select * from unnest(${arrayParameters(NEW_COLUMNS)})
   on conflict (short_code) do nothing
   returning id`,
);

const label = statement(
  'codes_label_many',
  'insert into code_tags (code_id, tag_id) select * from unnest($1::uuid[], $2::uuid[]) as t (code_id, tag_id)',
);

/** Index: code_counts_pkey. */
const take = statement<{ used: string; taken: string }>(
  'codes_take_room',
  `update code_counts
   set live = live + case when $3::bigint is null then $2 else greatest(0, least($2, $3 - live)) end
   where account_id = $1
   returning old.live as used, new.live - old.live as taken`,
);

/**
 * Counts up to `wanted` codes as live before they are created, as many as the account's limit allows, and locks the
 * counter until the transaction ends. Gives how many. Fails with QR_LIMIT_REACHED when not one is left.
 */
export async function takeRoom(tx: PoolClient, account: Account, wanted: number): Promise<number> {
  const row = await first(tx, take, [account.id, wanted, account.codeLimit]);
  if (!row) throw new Error(`account ${account.id} has no counter of codes`);
  if (account.codeLimit !== null && Number(row.used) >= account.codeLimit) {
    throw codeLimitReached(account.codeLimit, Number(row.used));
  }
  return Number(row.taken);
}

/** Index: code_counts_pkey. */
const list = statement('codes_list_many', 'update code_counts set listed = listed + $2 where account_id = $1');

/**
 * Creates dynamic codes with as many statements as one code takes, and announces them. The caller has made room for
 * them in the account's limit. Gives the warnings, by id, of those that labels were lost of. Fails with
 * SHORT_CODE_NOT_ALLOCATED when no free short codes are found.
 */
export async function createCodes(
  tx: PoolClient,
  platformUrl: string,
  together: Together,
  wanted: readonly WantedCode[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const { accountId: account_id, domain, design, now: created_at } = together;
  const folders = await resolveLabels(
    tx,
    FOLDER,
    account_id,
    wanted.flatMap(({ folder }) => folder ?? []),
  );
  const allTags = await resolveLabels(
    tx,
    TAG,
    account_id,
    wanted.flatMap((code) => code.tags),
  );
  const labels: { code: string; tag: string }[] = [];
  const warnings = new Map<string, readonly string[]>();
  const rows = wanted.map(({ id, targetUrl: target_url, name, campaignType: campaign_type, ...code }) => {
    const filing = labelsOf(folders, code.folder === null ? [] : [code.folder]);
    const tagging = labelsOf(allTags, code.tags);
    // Only now it is known that so many ids and names are of different tags.
    const applied = tagging.labels.slice(0, MAX_TAGS);
    const lost = [...filing.warnings, ...tagging.warnings];
    if (applied.length < tagging.labels.length) lost.push(`${TOO_MANY_TAGS} The others are not applied.`);
    if (lost.length > 0) warnings.set(id, lost);
    for (const tag of applied) labels.push({ code: id, tag: tag.id });
    const [folder = null] = filing.labels;
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
  if (labels.length > 0) await run(tx, label, [labels.map(({ code }) => code), labels.map(({ tag }) => tag)]);
  await announceAll(tx, rows, (row) => codeFrom(row, platformUrl, 0), { type: 'qr.created' });
  // Locks the counter until the transaction ends, so it comes last.
  await run(tx, list, [account_id, rows.length]);
  return warnings;
}

/**
 * Copies the rows in as if no short code of theirs were taken, which nearly none ever is and costs less. Where one is,
 * also by one of their own, it looks at each.
 */
async function insertAll(tx: PoolClient, rows: readonly CodeRow[]): Promise<void> {
  await tx.query('savepoint untaken');
  try {
    await copyRows(tx, 'codes', NEW_COLUMNS, rows, (row) => [row]);
  } catch (error) {
    if (!(error instanceof DatabaseError && error.constraint === 'codes_short_code_key')) throw error;
    await tx.query('rollback to savepoint untaken');
    await insertUntaken(tx, rows);
  }
}

/** Draws anew for those whose short code is taken. */
async function insertUntaken(tx: PoolClient, rows: readonly CodeRow[]): Promise<void> {
  let left = rows;
  for (let attempt = 0; attempt < SHORT_CODE_ATTEMPTS && left.length > 0; attempt++) {
    const inserted = await run(tx, insert, arraysOf(NEW_COLUMNS, left));
    const done = new Set(inserted.map(({ id }) => id));
    left = left.filter(({ id }) => !done.has(id));
    for (const row of left) row.short_code = newShortCode();
  }
  if (left.length > 0) throw failure('SHORT_CODE_NOT_ALLOCATED', 'No free short code was found; try again.');
}
