import type { PoolClient } from 'pg';
import { designJson } from '../../../common/contract/code-json.ts';
import { failure } from '../../../common/contract/errors.ts';
import { newUuid } from '../../../common/contract/ids.ts';
import { first, type Queryable, statement } from '../../../common/postgres/sql.ts';
import type { Code, CreateCodeRequest } from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import type { Route } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import type { Account } from '../../access/caller.ts';
import { listed, parameters, valuesOf } from '../../db/columns.ts';
import { expectStorable } from '../../db/storable.ts';
import { domainForPrinting, FOR_ONE_CODE } from '../../domains/for-printing.ts';
import { announce } from '../announce.ts';
import { type CodeRow, codeFrom, NEW_COLUMNS, type NewDynamicCode, newDynamicRow } from '../code-row.ts';
import type { IsPlatformHost } from '../fields/platform-hosts.ts';
import { tagsOrFailure } from '../fields/tags.ts';
import { targetOrFailure } from '../fields/target-url.ts';
import { insertTags, resolveNewCodeLabels } from './new-code-labels.ts';
import { withNewShortCode } from './short-code.ts';

/** A validated request for a dynamic code. `folder` and `tags` are ids or names. */
export interface NewCode {
  readonly targetUrl: string;
  readonly name: string | null;
  readonly campaignType: string | null;
  readonly domain: { readonly id: string; readonly hostname: string } | null;
  readonly folder: string | undefined;
  readonly tags: readonly string[];
}

interface InsertedRow {
  used: string;
  created_at: Date | null;
}

/**
 * Locks the account's counter first, so that concurrent calls cannot exceed the limit, then inserts and counts the
 * code. If `created_at` is null, nothing was inserted: the limit is reached (`used`), or another code has the short
 * code. Indexes: code_counts_pkey, codes_short_code_key.
 */
const insert = statement<InsertedRow>(
  'codes_insert',
  `with counter as (
     select live from code_counts where account_id = $1 for update
   ), created as (
     insert into codes (${listed(NEW_COLUMNS)})
     select ${parameters(NEW_COLUMNS, 3)} from counter where $2::bigint is null or live < $2
     on conflict (short_code) do nothing
     returning created_at
   ), counted as (
     update code_counts set live = live + 1, listed = listed + 1
     where account_id = $1 and exists (select from created)
   )
   select live as used, (select created_at from created) as created_at from counter`,
);

/**
 * Validates a request before anything is written; only too many tags may be noticed later, once references are
 * resolved. Fails with INVALID_FIELD, or as `domainForPrinting` does.
 */
export async function readNewCode(
  on: Queryable,
  isPlatformHost: IsPlatformHost,
  account: Account,
  request: CreateCodeRequest,
): Promise<NewCode> {
  const { name, campaignType, domainId } = request;
  expectStorable({ name, campaign_type: campaignType });
  const targetUrl = await targetOrFailure(on, isPlatformHost, account.id, request.targetUrl);
  const tags = tagsOrFailure(request.tags);
  return {
    targetUrl,
    name: name || null,
    campaignType: campaignType ?? null,
    domain: domainId === undefined ? null : await domainForPrinting(on, account.id, domainId, FOR_ONE_CODE),
    folder: request.folder,
    tags,
  };
}

/** Creates a dynamic code. A label that can't be applied only causes a warning. */
export async function createCode(
  tx: PoolClient,
  platformUrl: string,
  account: Account,
  newCode: NewCode,
): Promise<{ code: Code; route: Route; warnings: string[] }> {
  const { folder, tags, warnings } = await resolveNewCodeLabels(tx, account.id, newCode);
  const names = tags.map(({ name }) => name);
  const row = newCodeRow(account, newCode, { short_code: '', folder, tags: names, created_at: new Date() });
  await insertCode(tx, account, row);
  await insertTags(tx, row.id, tags);
  const code = codeFrom(row, platformUrl, 0);
  const route = await announce(tx, row, code, { type: 'qr.created' });
  return { code, route, warnings: [...warnings] };
}

/** The row of a new code. `tags`: names. */
export function newCodeRow(
  account: Account,
  { targetUrl, name, campaignType, domain }: NewCode,
  rest: Pick<NewDynamicCode, 'short_code' | 'folder' | 'tags' | 'created_at'>,
): CodeRow {
  return newDynamicRow({
    ...rest,
    id: newUuid(),
    account_id: account.id,
    target_url: targetUrl,
    name,
    campaign_type: campaignType,
    domain,
    design: designJson(undefined),
  });
}

/** Inserts a code; sets its short code and times in the row. */
async function insertCode(tx: PoolClient, account: Account, code: CodeRow): Promise<void> {
  await withNewShortCode(async (shortCode) => {
    code.short_code = shortCode;
    const row = await first(tx, insert, [account.id, account.codeLimit, ...valuesOf(NEW_COLUMNS, code)]);
    if (!row) throw new Error(`account ${account.id} has no code counter`);
    if (row.created_at) {
      code.created_at = row.created_at;
      code.updated_at = row.created_at;
      return true;
    }
    if (account.codeLimit !== null && Number(row.used) >= account.codeLimit) {
      throw codeLimitReached(account.codeLimit, Number(row.used));
    }
    return undefined;
  });
}

/** The QR_LIMIT_REACHED failure, with the account's limit and number of codes. */
export function codeLimitReached(limit: number, used: number) {
  const message = `This account has ${used} of its ${limit} QR codes; delete some or change the plan.`;
  return failure('QR_LIMIT_REACHED', message, { limit: String(limit), used: String(used) });
}
