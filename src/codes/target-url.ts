import { failure } from '../../common/contract/errors.ts';
import { SHORT_CODE } from '../../common/contract/short-code.ts';
import { type Queryable, run, statement } from '../../common/postgres/sql.ts';
import type { IsPlatformHost } from './platform-hosts.ts';
import { isUsableHost } from './web-host.ts';

/** Longest target, in characters. Source: docs/contract.md, "The QR code resource". */
const MAX_CHARACTERS = 2_048;

/** Of any account, removed domains included: scans there are still answered. Index: verified_hostnames_pkey. */
const knownHosts = statement<{ hostname: string }>(
  'codes_known_hosts',
  'select hostname from verified_hostnames where hostname = any($1)',
);

/** A target that can be used, or the sentence that says why it can't. */
export type Target = { readonly url: string } | { readonly problem: string };

const LOOP: Target = { problem: 'target_url: must not lead to a scan URL of this platform.' };

/**
 * Reads targets: web addresses that do not lead to a scan URL of this platform, where they would loop. They are stored
 * as sent, trimmed.
 */
export async function readTargets(
  on: Queryable,
  isPlatformHost: IsPlatformHost,
  inputs: readonly string[],
): Promise<Target[]> {
  const targets = inputs.map((input) => readWebAddress('target_url', input));
  const hosts = targets.map((target) => ('url' in target ? scanHost(target.url) : undefined));
  const looked = [...new Set(hosts.flatMap((host) => host ?? []))];
  const found = looked.length === 0 ? [] : await run(on, knownHosts, [looked]);
  const ours = new Set(found.map(({ hostname }) => hostname));
  return targets.map((target, index) => {
    const host = hosts[index];
    return host !== undefined && (isPlatformHost(host) || ours.has(host)) ? LOOP : target;
  });
}

/** Reads an absolute http or https URL without credentials, trimmed; `field` is what a problem names. */
export function readWebAddress(field: string, input: string): Target {
  const url = input.trim();
  if (url === '') return { problem: `${field}: is needed.` };
  if (url.length > MAX_CHARACTERS && [...url].length > MAX_CHARACTERS) {
    return { problem: `${field}: must have at most ${MAX_CHARACTERS} characters.` };
  }
  // The URL parser drops control characters and mends `http:host`; neither is what was meant.
  const parsed = /^https?:\/\/[^/?#]/i.test(url) && !/[\s\p{Cc}\\]/u.test(url) ? URL.parse(url) : null;
  if (!parsed) return { problem: `${field}: must be an absolute http or https URL.` };
  const { username, password, hostname } = parsed;
  if (username !== '' || password !== '') return { problem: `${field}: must not carry a user name or password.` };
  if (!isUsableHost(hostname)) return { problem: `${field}: must have a host that can be looked up.` };
  return { url };
}

/** One target, for callers that fail as a whole. */
export async function targetOrFailure(on: Queryable, isPlatformHost: IsPlatformHost, input: string): Promise<string> {
  const [target = LOOP] = await readTargets(on, isPlatformHost, [input]);
  if ('problem' in target) throw failure('INVALID_FIELD', target.problem);
  return target.url;
}

/** The host of a URL that looks like a scan URL, without the dot of the root. */
function scanHost(url: string): string | undefined {
  // Most targets need no second parsing. Some proxies decode a path before they pass it on.
  if (!/\/r\/|%/.test(url)) return undefined;
  const { pathname, hostname } = new URL(url);
  const shortCode = /^\/r\/([^/]+)\/?$/.exec(decoded(pathname))?.[1];
  return shortCode !== undefined && SHORT_CODE.test(shortCode) ? hostname.replace(/\.$/, '') : undefined;
}

function decoded(path: string): string {
  return path.replace(/%[2-7][0-9a-f]/gi, (byte) => String.fromCharCode(Number.parseInt(byte.slice(1), 16)));
}
