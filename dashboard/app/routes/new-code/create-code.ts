import { createClient, type Transport } from '@connectrpc/connect';
import { METADATA } from '../../../../common/contract/metadata.ts';
import { type Code, CodesService } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { type Draft, wifiOf } from './draft.ts';

/** A new code, and what of the draft could not be applied. */
export interface Created {
  readonly code?: Code | undefined;
  readonly warnings: readonly string[];
}

/** Creates the code. A second call with the same draft and idempotency key creates no second one. */
export function createCode(transport: Transport, draft: Draft, idempotencyKey: string): Promise<Created> {
  const codes = createClient(CodesService, transport);
  const options = { headers: { [METADATA.idempotencyKey]: idempotencyKey } };
  const { url, tags } = draft;
  const [name, folder, campaignType] = [draft.name.trim(), draft.folder.trim(), draft.campaignType.trim()];
  const filed = { ...(name !== '' && { name }), ...(folder !== '' && { folder }), tags: [...tags] };
  const domain = draft.domainId === '' ? {} : { domainId: draft.domainId };
  const design = { foregroundColor: draft.foreground, backgroundColor: draft.background };
  switch (draft.kind) {
    case 'link': {
      const campaign = campaignType === '' ? {} : { campaignType };
      return codes.createCode({ targetUrl: url.trim(), ...filed, ...domain, ...campaign }, options);
    }
    case 'landing_page':
      return codes.createLandingPageCode({ landingPage: draft.page, design, ...filed, ...domain }, options);
    case 'wifi':
      return codes.createStaticCode({ content: { case: 'wifi', value: wifiOf(draft) }, design, ...filed }, options);
    case 'text':
      return codes.createStaticCode({ content: { case: 'payload', value: draft.text }, design, ...filed }, options);
  }
}
