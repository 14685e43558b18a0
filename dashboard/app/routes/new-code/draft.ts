import { create } from '@bufbuild/protobuf';
import { isLonger } from '../../../../common/codes/is-longer.ts';
import { parseWebAddress } from '../../../../common/codes/web-address.ts';
import { formatWifi } from '../../../../common/codes/wifi.ts';
import { encode } from '../../../../common/qr/matrix.ts';
import { WifiSchema, WifiSecurity } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { type LandingPage, LandingPageSchema } from '../../../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import { colourWarning, isColour } from '../../components/colour-field.tsx';
import { placeholderScanUrl } from '../../components/domain-select.tsx';
import { folderProblem, tagsProblem } from '../../components/filing-fields.tsx';
import { landingPageProblems } from '../../components/landing-page/problems.ts';
import type { FieldErrors } from '../../data/field-errors.ts';
import type { Messages } from '../../messages/index.ts';

/** What a scan does, from the most common on. */
export const KINDS = ['link', 'landing_page', 'wifi', 'text'] as const;
export type Kind = (typeof KINDS)[number];

/** What was typed, for all kinds: changing the kind loses nothing. */
export interface Draft {
  readonly kind: Kind;
  readonly url: string;
  readonly page: LandingPage;
  readonly ssid: string;
  readonly password: string;
  readonly security: 'wpa' | 'wep' | 'none';
  readonly hidden: boolean;
  readonly text: string;
  readonly name: string;
  readonly campaignType: string;
  readonly folder: string;
  readonly tags: readonly string[];
  /** `domain_…`; empty for the platform's host. */
  readonly domainId: string;
  readonly foreground: string;
  readonly background: string;
}

export const EMPTY_DRAFT: Draft = {
  kind: 'link',
  url: '',
  page: create(LandingPageSchema),
  ssid: '',
  password: '',
  security: 'wpa',
  hidden: false,
  text: '',
  name: '',
  campaignType: '',
  folder: '',
  tags: [],
  domainId: '',
  foreground: '',
  background: '',
};

/** The most that fits a code at error correction level M, in bytes of UTF-8. */
export const MAX_PAYLOAD_BYTES = 2_331;
const MAX_SSID_BYTES = 32;
const MAX_NAME_CHARACTERS = 200;

/** A code of version 10 and above has 57 modules a side: at 4 cm, 0.66 mm each with the quiet zone. */
const DENSE_MODULES = 57;

/** What is wrong with a draft, by the API's names of fields. The core decides finally. */
export function problemsOf(draft: Draft, messages: Messages): FieldErrors {
  const { common, labels, newCode } = messages;
  const found: Record<string, string | undefined> = {};
  if (draft.kind === 'link') {
    const address = parseWebAddress(draft.url);
    if ('problem' in address) found.target_url = common.urlProblems[address.problem];
  }
  if (draft.kind === 'landing_page') Object.assign(found, landingPageProblems(draft.page, messages));
  if (draft.kind === 'text') {
    if (draft.text === '') found.payload = newCode.textMissing;
    if (bytesOf(draft.text) > MAX_PAYLOAD_BYTES) found.payload = newCode.textTooLong;
  }
  if (draft.kind === 'wifi') {
    const wifi = formatWifi(wifiOf(draft));
    if ('problem' in wifi) {
      const field = wifi.problem === 'ssid_control_characters' ? 'wifi.ssid' : 'wifi.password';
      found[field] = newCode.wifiProblems[wifi.problem];
    }
    if (draft.ssid === '') found['wifi.ssid'] = newCode.ssidMissing;
    if (bytesOf(draft.ssid) > MAX_SSID_BYTES) found['wifi.ssid'] = newCode.ssidTooLong;
  }
  if (isLonger(draft.name, MAX_NAME_CHARACTERS)) found.name = newCode.nameTooLong;
  const folder = folderProblem(draft.folder);
  if (folder) found.folder = labels.problems[folder];
  const tags = tagsProblem(draft.tags);
  if (tags) found.tags = labels.problems[tags];
  if (hasDesign(draft) && !(isColour(draft.foreground) && isColour(draft.background))) {
    found.design = common.colourProblem;
  }
  return found;
}

/** The fields of a wireless network. An open network has no password, whatever was typed before. */
export function wifiOf({ ssid, password, security, hidden }: Draft) {
  const { WPA, WEP, NONE } = WifiSecurity;
  return create(WifiSchema, {
    ssid,
    password: security === 'none' ? '' : password,
    security: { wpa: WPA, wep: WEP, none: NONE }[security],
    hidden,
  });
}

/**
 * What the code will encode, with a placeholder for the short code; undefined if there is nothing yet, or too much.
 * `origin`: of scan URLs on the chosen domain.
 */
export function encodedBy(draft: Draft, origin: string): string | undefined {
  if (draft.kind === 'link' || draft.kind === 'landing_page') return placeholderScanUrl(origin);
  if (draft.kind === 'text') {
    return draft.text === '' || bytesOf(draft.text) > MAX_PAYLOAD_BYTES ? undefined : draft.text;
  }
  if (draft.ssid === '' || bytesOf(draft.ssid) > MAX_SSID_BYTES) return undefined;
  const wifi = formatWifi(wifiOf(draft));
  return 'problem' in wifi ? undefined : wifi.payload;
}

/** Why the code may be hard to scan. */
export function warningsOf(draft: Draft, encoded: string | undefined, messages: Messages): string[] {
  const colours = hasDesign(draft) ? colourWarning(draft.foreground, draft.background, messages) : undefined;
  const isDense = encoded !== undefined && encode(encoded).modules >= DENSE_MODULES;
  return [...(colours === undefined ? [] : [colours]), ...(isDense ? [messages.newCode.dense] : [])];
}

/** Whether the API takes colours for codes of this kind: those of links are black on white. */
export function hasDesign({ kind }: Draft): boolean {
  return kind !== 'link';
}

/** Whether the print contains a scan URL. */
export function hasDomain({ kind }: Draft): boolean {
  return kind === 'link' || kind === 'landing_page';
}

export function bytesOf(text: string): number {
  return new TextEncoder().encode(text).length;
}
