import { failure } from '../contract/errors.ts';
import { first, type Queryable, statement } from '../db/sql.ts';
import { SHORT_CODE } from './short-code.ts';

/** Longest target, in characters. Source: decision "The QR code resource". */
const MAX_CHARACTERS = 2_048;

/** Of whichever account. Index: domains_proven. */
const knownHost = statement('codes_known_host', `select from domains where hostname = $1 and state <> 'pending'`);

/** A target that can be used, or the sentence that says why it can't. */
export type Target = { readonly url: string } | { readonly problem: string };

/**
 * Reads a target: a web address that does not lead to a scan URL of this platform, where it would loop. It is stored as
 * sent, trimmed.
 */
export async function readTarget(on: Queryable, platformUrl: string, input: string): Promise<Target> {
  const target = readWebAddress('target_url', input);
  if ('problem' in target) return target;
  if (await loops(on, platformUrl, new URL(target.url))) {
    return { problem: 'target_url: must not lead to a scan URL of this platform.' };
  }
  return target;
}

/** Reads an absolute http or https URL without credentials, trimmed; `field` is what a problem names. */
export function readWebAddress(field: string, input: string): Target {
  const url = input.trim();
  if (url === '') return { problem: `${field}: is needed.` };
  if ([...url].length > MAX_CHARACTERS) {
    return { problem: `${field}: must have at most ${MAX_CHARACTERS} characters.` };
  }
  // The URL parser drops control characters and mends `http:host`; neither is what was meant.
  if (!/^https?:\/\/[^/?#]/i.test(url) || /[\s\p{Cc}\\]/u.test(url) || !URL.canParse(url)) {
    return { problem: `${field}: must be an absolute http or https URL.` };
  }
  const { username, password } = new URL(url);
  if (username !== '' || password !== '') return { problem: `${field}: must not carry a user name or password.` };
  return { url };
}

/** The same, for callers that fail as a whole. */
export async function targetOrFailure(on: Queryable, platformUrl: string, input: string): Promise<string> {
  const target = await readTarget(on, platformUrl, input);
  if ('problem' in target) throw failure('INVALID_FIELD', target.problem);
  return target.url;
}

async function loops(on: Queryable, platformUrl: string, { host, hostname, pathname }: URL): Promise<boolean> {
  const shortCode = /^\/r\/([^/]+)\/?$/.exec(pathname)?.[1];
  if (shortCode === undefined || !SHORT_CODE.test(shortCode)) return false;
  if (host === new URL(platformUrl).host) return true;
  return (await first(on, knownHost, [hostname])) !== undefined;
}
