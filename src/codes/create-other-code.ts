import type { JsonValue } from '@bufbuild/protobuf';
import { raw } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { designJson } from '../../common/contract/code-json.ts';
import { failure } from '../../common/contract/errors.ts';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import type {
  Code,
  CreateLandingPageCodeRequest,
  CreateStaticCodeRequest,
  Design,
} from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { connectionOf } from '../db/orm-transaction.ts';
import { domainForPrinting, FOR_ONE_CODE, type PrintedDomain } from '../domains/for-printing.ts';
import { announce } from './announce.ts';
import { codeFrom } from './code-row.ts';
import { CodeCountEntity, CodeEntity } from './entities.ts';
import { findCode } from './find-code.ts';
import { readLandingPage } from './landing-page.ts';
import { withNewShortCode } from './short-code.ts';
import { wifiPayload } from './wifi.ts';

/** Creates a code that carries its payload in the print. `accountId`, here and below: UUID. */
export function createStaticCode(
  em: EntityManager,
  platformUrl: string,
  accountId: string,
  { content, name, design }: CreateStaticCodeRequest,
): Promise<Code> {
  const payload = content.case === 'wifi' ? wifiPayload(content.value) : (content.value ?? '');
  if (payload.includes('\0')) throw failure('INVALID_FIELD', 'payload: must not contain the NUL character.');
  return createOther(em, platformUrl, accountId, { type: 'static', payload, name, design });
}

/** Creates a code whose scan shows a page of the account's own. */
export async function createLandingPageCode(
  em: EntityManager,
  platformUrl: string,
  accountId: string,
  { landingPage, domainId, name, design }: CreateLandingPageCodeRequest,
): Promise<Code> {
  const page = readLandingPage(landingPage);
  const domain =
    domainId === undefined ? null : await domainForPrinting(connectionOf(em), accountId, domainId, FOR_ONE_CODE);
  return createOther(em, platformUrl, accountId, { type: 'landing_page', page, domain, name, design });
}

interface OtherCode {
  readonly type: 'static' | 'landing_page';
  readonly payload?: string;
  readonly page?: JsonValue;
  readonly domain?: PrintedDomain | null;
  readonly name: string | undefined;
  readonly design: Design | undefined;
}

/** These types count towards no limit. Indexes: codes_short_code_key, code_counts_pkey. */
async function createOther(em: EntityManager, platformUrl: string, accountId: string, asked: OtherCode): Promise<Code> {
  const id = newUuid();
  const { type, payload = null, page: landingPage = null, domain } = asked;
  const code = {
    id,
    accountId,
    type,
    payload,
    landingPage,
    name: asked.name || null,
    domainId: domain?.id ?? null,
    hostname: domain?.hostname ?? null,
    ...designJson(asked.design),
  };
  await withNewShortCode(async (shortCode) => {
    const insert = em.createQueryBuilder(CodeEntity).insert({ ...code, shortCode });
    const { affectedRows } = await insert.onConflict('shortCode').ignore().execute('run');
    return affectedRows === 1 || undefined;
  });
  const listed = raw('listed + 1');
  await em.nativeUpdate(CodeCountEntity, { accountId }, { listed });
  const tx = connectionOf(em);
  const row = await findCode(tx, accountId, encodeId('qr', id));
  const created = codeFrom(row, platformUrl, 0);
  await announce(tx, row, created, { type: 'qr.created' });
  return created;
}
