import type { JsonValue } from '@bufbuild/protobuf';
import { raw } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { designJson } from '../../../common/contract/code-json.ts';
import { encodeId, newUuid } from '../../../common/contract/ids.ts';
import { LIMITS, limitReached, NON_DYNAMIC } from '../../../common/contract/limits.ts';
import type {
  Code,
  CreateLandingPageCodeRequest,
  CreateStaticCodeRequest,
} from '../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { connectionOf } from '../../db/orm-transaction.ts';
import { expectStorable } from '../../db/storable.ts';
import { domainForPrinting, FOR_ONE_CODE, type PrintedDomain } from '../../domains/for-printing.ts';
import { announce } from '../announce.ts';
import { codeFrom } from '../code-row.ts';
import { countNonDynamic } from '../count-non-dynamic.ts';
import { CodeCountEntity, CodeEntity } from '../entities.ts';
import { designWarnings } from '../fields/design-warnings.ts';
import { readLandingPage } from '../fields/landing-page.ts';
import { tagsOrFailure } from '../fields/tags.ts';
import { wifiPayload } from '../fields/wifi.ts';
import { findCode } from '../find-code.ts';
import { insertTags, resolveNewCodeLabels } from './new-code-labels.ts';
import { withNewShortCode } from './short-code.ts';

/**
 * Creates a code whose image encodes its payload itself. `accountId`, here and below: UUID. Fails with INVALID_FIELD.
 */
export function createStaticCode(
  em: EntityManager,
  platformUrl: string,
  accountId: string,
  request: CreateStaticCodeRequest,
): Promise<CreatedCode> {
  const { content } = request;
  const payload = content.case === 'wifi' ? wifiPayload(content.value) : (content.value ?? '');
  expectStorable({ payload });
  return createNonDynamicCode(em, platformUrl, accountId, { ...request, type: 'static', payload });
}

/** Creates a code whose scans show a landing page. Fails with INVALID_FIELD, or as `domainForPrinting` does. */
export async function createLandingPageCode(
  em: EntityManager,
  platformUrl: string,
  accountId: string,
  request: CreateLandingPageCodeRequest,
): Promise<CreatedCode> {
  const { landingPage, domainId } = request;
  const page = readLandingPage(landingPage);
  const domain =
    domainId === undefined ? null : await domainForPrinting(connectionOf(em), accountId, domainId, FOR_ONE_CODE);
  return createNonDynamicCode(em, platformUrl, accountId, { ...request, type: 'landing_page', page, domain });
}

/**
 * The code, with one sentence for everything requested that could not be applied and for colours that are hard to scan.
 */
export interface CreatedCode {
  readonly code: Code;
  readonly warnings: string[];
}

/** `folder` and `tags` are ids or names. */
interface NonDynamicCode extends Pick<CreateStaticCodeRequest, 'name' | 'design' | 'folder' | 'tags'> {
  readonly type: 'static' | 'landing_page';
  readonly payload?: string;
  readonly page?: JsonValue;
  readonly domain?: PrintedDomain | null;
}

/**
 * Creates a code of a type that plans do not limit. Fails with LIMIT_REACHED. Indexes: codes_short_code_key,
 * code_counts_pkey, codes_not_dynamic.
 */
async function createNonDynamicCode(
  em: EntityManager,
  platformUrl: string,
  accountId: string,
  newCode: NonDynamicCode,
): Promise<CreatedCode> {
  expectStorable({ name: newCode.name });
  const tx = connectionOf(em);
  const requested = { folder: newCode.folder, tags: tagsOrFailure(newCode.tags) };
  const { folder, tags, warnings } = await resolveNewCodeLabels(tx, accountId, requested);
  const id = newUuid();
  const { type, payload = null, page: landingPage = null, domain } = newCode;
  const columns = {
    id,
    accountId,
    type,
    payload,
    landingPage,
    policy: null,
    name: newCode.name || null,
    folderId: folder?.id ?? null,
    domainId: domain?.id ?? null,
    hostname: domain?.hostname ?? null,
    ...designJson(newCode.design),
  };
  await withNewShortCode(async (shortCode) => {
    const insert = em.createQueryBuilder(CodeEntity).insert({ ...columns, shortCode });
    const { affectedRows } = await insert.onConflict('shortCode').ignore().execute('run');
    return affectedRows === 1 || undefined;
  });
  await insertTags(tx, id, tags);
  // Locks the counter, so that those that are created at the same time are counted one after the other.
  const listed = raw('listed + 1');
  await em.nativeUpdate(CodeCountEntity, { accountId }, { listed });
  if ((await countNonDynamic(tx, accountId)) > LIMITS[NON_DYNAMIC]) throw limitReached(NON_DYNAMIC);
  const row = await findCode(tx, accountId, encodeId('qr', id));
  const code = codeFrom(row, platformUrl, 0);
  await announce(tx, row, code, { type: 'qr.created' });
  return { code, warnings: [...warnings, ...designWarnings(code.design)] };
}
