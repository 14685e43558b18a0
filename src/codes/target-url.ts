import type { Pool } from 'pg';
import { failure } from '../contract/errors.ts';
import { first, statement } from '../db/sql.ts';
import { SHORT_CODE } from './short-code.ts';

/** Longest target, in characters. Source: decision "The QR code resource". */
const MAX_CHARACTERS = 2_048;

/** Index: domains_hostname_key. */
const knownHost = statement('codes_known_host', 'select from domains where hostname = $1');

/** A target that can be used, or the sentence that says why it can't. */
export type Target = { readonly url: string } | { readonly problem: string };

/**
 * Reads a target: an absolute http or https URL without credentials that does not lead to a scan URL of this platform,
 * where it would loop. It is stored as sent, trimmed.
 */
export async function readTarget(pool: Pool, platformUrl: string, input: string): Promise<Target> {
  const url = input.trim();
  if (url === '') return { problem: 'target_url: is needed.' };
  if ([...url].length > MAX_CHARACTERS) {
    return { problem: `target_url: must have at most ${MAX_CHARACTERS} characters.` };
  }
  // The URL parser drops control characters and mends `http:host`; neither is what was meant.
  if (!/^https?:\/\/[^/?#]/i.test(url) || /[\s\p{Cc}\\]/u.test(url) || !URL.canParse(url)) {
    return { problem: 'target_url: must be an absolute http or https URL.' };
  }
  const parsed = new URL(url);
  if (parsed.username !== '' || parsed.password !== '') {
    return { problem: 'target_url: must not carry a user name or password.' };
  }
  if (await loops(pool, platformUrl, parsed)) {
    return { problem: 'target_url: must not lead to a scan URL of this platform.' };
  }
  return { url };
}

/** The same, for callers that fail as a whole. */
export async function targetOrFailure(pool: Pool, platformUrl: string, input: string): Promise<string> {
  const target = await readTarget(pool, platformUrl, input);
  if ('problem' in target) throw failure('INVALID_FIELD', target.problem);
  return target.url;
}

async function loops(pool: Pool, platformUrl: string, { host, hostname, pathname }: URL): Promise<boolean> {
  const shortCode = /^\/r\/([^/]+)\/?$/.exec(pathname)?.[1];
  if (shortCode === undefined || !SHORT_CODE.test(shortCode)) return false;
  if (host === new URL(platformUrl).host) return true;
  return (await first(pool, knownHost, [hostname])) !== undefined;
}
