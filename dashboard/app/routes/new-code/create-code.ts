import { equals } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { createClient, type Transport } from '@connectrpc/connect';
import { type Code, CodesService } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { LandingPageSchema } from '../../../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import { type Draft, encodedBy, wifiOf } from './draft.ts';

/** A new code. `notFiled`: why it could not be put into its folder and tags. */
export interface Created {
  readonly code?: Code | undefined;
  readonly warnings: readonly string[];
  readonly notFiled?: unknown;
}

/** How much the clocks of browser and core may differ, in ms. */
const CLOCK_DIFFERENCE_MS = 5 * 60_000;

/**
 * Creates the code. `key`: its idempotency key. `triedAt`: when a call with the same draft was made whose result is
 * unknown, in ms. The core remembers keys of dynamic codes; for the others this looks for the code among the newest ones.
 */
export async function createCode(
  transport: Transport,
  draft: Draft,
  { key, triedAt }: { key: string; triedAt: number | undefined },
): Promise<Created> {
  const codes = createClient(CodesService, transport);
  const { folder, tags, url, campaignType, domainId } = draft;
  const name = draft.name.trim() === '' ? {} : { name: draft.name.trim() };
  const domain = domainId === '' ? {} : { domainId };
  const filing = { ...(folder.trim() !== '' && { folder: folder.trim() }), tags: [...tags] };
  if (draft.kind === 'link') {
    const campaign = campaignType.trim() === '' ? {} : { campaignType: campaignType.trim() };
    const request = { targetUrl: url.trim(), ...name, ...domain, ...filing, ...campaign };
    const { code, warnings } = await codes.createCode(request, { headers: { 'idempotency-key': key } });
    return { code, warnings };
  }
  const created =
    (triedAt !== undefined && (await findCreated(transport, draft, triedAt - CLOCK_DIFFERENCE_MS))) ||
    (await createUnfiled());
  if (!created.code || (filing.folder === undefined && tags.length === 0)) return created;
  const paths = [...(filing.folder === undefined ? [] : ['folder']), ...(tags.length === 0 ? [] : ['tags'])];
  try {
    const { code } = await codes.updateCode({ id: created.code.id, updateMask: { paths }, ...filing });
    return { ...created, code };
  } catch (notFiled) {
    return { ...created, notFiled };
  }

  function createUnfiled(): Promise<Created> {
    const design = { foregroundColor: draft.foreground, backgroundColor: draft.background };
    if (draft.kind === 'landing_page') {
      return codes.createLandingPageCode({ landingPage: draft.page, design, ...name, ...domain });
    }
    const content =
      draft.kind === 'wifi'
        ? ({ case: 'wifi', value: wifiOf(draft) } as const)
        : ({ case: 'payload', value: draft.text } as const);
    return codes.createStaticCode({ content, design, ...name });
  }
}

/** The newest code with the draft's content that was created since then. */
async function findCreated(transport: Transport, draft: Draft, since: number): Promise<Created | undefined> {
  const { codes } = await createClient(CodesService, transport).listCodes({ limit: 25 });
  const payload = draft.kind === 'landing_page' ? undefined : encodedBy(draft, '');
  const found = codes.find(({ createdAt, name, payload: encoded, landingPage }) => {
    if (!createdAt || timestampMs(createdAt) < since || (name ?? '') !== draft.name.trim()) return false;
    return payload === undefined
      ? landingPage !== undefined && equals(LandingPageSchema, landingPage, draft.page)
      : encoded === payload;
  });
  return found && { code: found, warnings: [] };
}
