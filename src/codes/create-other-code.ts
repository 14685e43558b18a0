import type { JsonValue } from '@bufbuild/protobuf';
import type { PoolClient } from 'pg';
import { designJson } from '../../common/contract/code-json.ts';
import { failure } from '../../common/contract/errors.ts';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import { first, statement } from '../../common/postgres/sql.ts';
import type {
  Code,
  CreateLandingPageCodeRequest,
  CreateStaticCodeRequest,
  Design,
} from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { domainForPrinting, FOR_ONE_CODE, type PrintedDomain } from '../domains/for-printing.ts';
import { announce } from './announce.ts';
import { codeFrom } from './code-row.ts';
import { findCode } from './find-code.ts';
import { readLandingPage } from './landing-page.ts';
import { withNewShortCode } from './short-code.ts';
import { wifiPayload } from './wifi.ts';

/** These types count towards no limit. No row: the short code is taken. Indexes: codes_short_code_key, code_counts_pkey. */
const insert = statement(
  'codes_insert_other',
  `with created as (
     insert into codes (id, account_id, short_code, type, payload, landing_page, name, domain_id, hostname,
       foreground_color, background_color)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
     on conflict (short_code) do nothing returning account_id
   )
   update code_counts set listed = listed + 1 where account_id = (select account_id from created) returning account_id`,
);

/** Creates a code that carries its payload in the print. `accountId`, here and below: UUID. */
export function createStaticCode(
  tx: PoolClient,
  platformUrl: string,
  accountId: string,
  { content, name, design }: CreateStaticCodeRequest,
): Promise<Code> {
  const payload = content.case === 'wifi' ? wifiPayload(content.value) : (content.value ?? '');
  if (payload.includes('\0')) throw failure('INVALID_FIELD', 'payload: must not contain the NUL character.');
  return createOther(tx, platformUrl, accountId, { type: 'static', payload, name, design });
}

/** Creates a code whose scan shows a page of the account's own. */
export async function createLandingPageCode(
  tx: PoolClient,
  platformUrl: string,
  accountId: string,
  { landingPage, domainId, name, design }: CreateLandingPageCodeRequest,
): Promise<Code> {
  const page = readLandingPage(landingPage);
  const domain = domainId === undefined ? null : await domainForPrinting(tx, accountId, domainId, FOR_ONE_CODE);
  return createOther(tx, platformUrl, accountId, { type: 'landing_page', page, domain, name, design });
}

interface OtherCode {
  readonly type: 'static' | 'landing_page';
  readonly payload?: string;
  readonly page?: JsonValue;
  readonly domain?: PrintedDomain | null;
  readonly name: string | undefined;
  readonly design: Design | undefined;
}

async function createOther(tx: PoolClient, platformUrl: string, accountId: string, asked: OtherCode): Promise<Code> {
  const id = newUuid();
  const { foregroundColor, backgroundColor } = designJson(asked.design);
  await withNewShortCode((shortCode) =>
    first(tx, insert, [
      id,
      accountId,
      shortCode,
      asked.type,
      asked.payload ?? null,
      asked.page ? JSON.stringify(asked.page) : null,
      asked.name || null,
      asked.domain?.id ?? null,
      asked.domain?.hostname ?? null,
      foregroundColor,
      backgroundColor,
    ]),
  );
  const row = await findCode(tx, accountId, encodeId('qr', id));
  const code = codeFrom(row, platformUrl, 0);
  await announce(tx, row, code, { type: 'qr.created' });
  return code;
}
