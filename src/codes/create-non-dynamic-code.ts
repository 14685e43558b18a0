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

/**
 * Creates a code whose image encodes its payload itself. `accountId`, here and below: UUID. Fails with INVALID_FIELD.
 */
export function createStaticCode(
  em: EntityManager,
  platformUrl: string,
  accountId: string,
  { content, name, design }: CreateStaticCodeRequest,
): Promise<Code> {
  const payload = content.case === 'wifi' ? wifiPayload(content.value) : (content.value ?? '');
  if (payload.includes('\0')) throw failure('INVALID_FIELD', 'payload: must not contain the NUL character.');
  return createNonDynamicCode(em, platformUrl, accountId, { type: 'static', payload, name, design });
}

/** Creates a code whose scans show a landing page. Fails with INVALID_FIELD, or as `domainForPrinting` does. */
export async function createLandingPageCode(
  em: EntityManager,
  platformUrl: string,
  accountId: string,
  { landingPage, domainId, name, design }: CreateLandingPageCodeRequest,
): Promise<Code> {
  const page = readLandingPage(landingPage);
  const domain =
    domainId === undefined ? null : await domainForPrinting(connectionOf(em), accountId, domainId, FOR_ONE_CODE);
  return createNonDynamicCode(em, platformUrl, accountId, { type: 'landing_page', page, domain, name, design });
}

interface NonDynamicCode {
  readonly type: 'static' | 'landing_page';
  readonly payload?: string;
  readonly page?: JsonValue;
  readonly domain?: PrintedDomain | null;
  readonly name: string | undefined;
  readonly design: Design | undefined;
}

/** Plans do not limit codes of these types. Indexes: codes_short_code_key, code_counts_pkey. */
async function createNonDynamicCode(
  em: EntityManager,
  platformUrl: string,
  accountId: string,
  newCode: NonDynamicCode,
): Promise<Code> {
  const id = newUuid();
  const { type, payload = null, page: landingPage = null, domain } = newCode;
  const code = {
    id,
    accountId,
    type,
    payload,
    landingPage,
    policy: null,
    name: newCode.name || null,
    domainId: domain?.id ?? null,
    hostname: domain?.hostname ?? null,
    ...designJson(newCode.design),
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
