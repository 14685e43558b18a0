import { isLonger } from './is-longer.ts';

/** Maximum length of a URL, in characters. Source: docs/contract.md, "The QR code resource". */
export const MAX_URL_CHARACTERS = 2_048;

/** Maximum length of a name without the trailing dot. Source: RFC 1035, section 2.3.4. */
export const MAX_NAME = 253;

/** Only ASCII: the URL parser has converted other scripts to their ASCII form. Underscores occur in real names. */
const LABEL = /^[a-z0-9_-]{1,63}$/;

/** Why a text is no web address. */
export type WebAddressProblem = 'missing' | 'too_long' | 'not_absolute' | 'credentials' | 'host';

/** A valid web address, trimmed, with its host as `URL.hostname` returns it; or why it is invalid. */
export type WebAddress = { readonly url: string; readonly hostname: string } | { readonly problem: WebAddressProblem };

const SENTENCES: Readonly<Record<WebAddressProblem, string>> = {
  missing: 'is required.',
  too_long: `must have at most ${MAX_URL_CHARACTERS} characters.`,
  not_absolute: 'must be an absolute http or https URL.',
  credentials: 'must not carry a user name or password.',
  host: 'must have a host that can be looked up.',
};

/** What an error says after the name of the field. */
export function webAddressSentence(problem: WebAddressProblem): string {
  return SENTENCES[problem];
}

/** Checks the form of an absolute http or https URL without credentials, in browsers too. */
export function parseWebAddress(input: string): WebAddress {
  const url = input.trim();
  if (url === '') return { problem: 'missing' };
  if (isLonger(url, MAX_URL_CHARACTERS)) return { problem: 'too_long' };
  // The URL parser drops control characters and corrects `http:host`; the result would not be what the caller meant.
  const parsed = /^https?:\/\/[^/?#]/i.test(url) && !/[\s\p{Cc}\\]/u.test(url) ? URL.parse(url) : null;
  if (!parsed) return { problem: 'not_absolute' };
  const { username, password, hostname } = parsed;
  if (username !== '' || password !== '') return { problem: 'credentials' };
  return isHost(hostname) ? { url, hostname } : { problem: 'host' };
}

/** Whether a host is an IP address or has the form of a DNS name; the URL parser also accepts `a..b`. */
function isHost(hostname: string): boolean {
  if (hostname.startsWith('[')) return true;
  const name = hostname.replace(/\.$/, '');
  return name.length <= MAX_NAME && name.split('.').every((label) => LABEL.test(label));
}
