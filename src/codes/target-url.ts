import { failure } from '../contract/errors.ts';
import { SHORT_CODE } from '../contract/short-code.ts';
import { type Queryable, run, statement } from '../db/sql.ts';

/** Longest target, in characters. Source: decision "The QR code resource". */
const MAX_CHARACTERS = 2_048;

/** Of whichever account. Index: domains_proven. */
const knownHosts = statement<{ hostname: string }>(
  'codes_known_hosts',
  `select hostname from domains where hostname = any($1) and state <> 'pending'`,
);

/** A target that can be used, or the sentence that says why it can't. */
export type Target = { readonly url: string } | { readonly problem: string };

const LOOP: Target = { problem: 'target_url: must not lead to a scan URL of this platform.' };

/**
 * Reads targets: web addresses that do not lead to a scan URL of this platform, where they would loop. They are stored
 * as sent, trimmed.
 */
export async function readTargets(on: Queryable, platformUrl: string, inputs: readonly string[]): Promise<Target[]> {
  const targets = inputs.map((input) => readWebAddress('target_url', input));
  const hosts = targets.map((target) => ('url' in target ? scanHost(target.url) : undefined));
  const looked = [...new Set(hosts.flatMap((host) => host?.hostname ?? []))];
  const found = looked.length === 0 ? [] : await run(on, knownHosts, [looked]);
  const ours = new Set(found.map(({ hostname }) => hostname));
  const platform = new URL(platformUrl).host;
  return targets.map((target, index) => {
    const led = hosts[index];
    return led && (led.host === platform || ours.has(led.hostname)) ? LOOP : target;
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
  const { username, password } = parsed;
  if (username !== '' || password !== '') return { problem: `${field}: must not carry a user name or password.` };
  return { url };
}

/** One target, for callers that fail as a whole. */
export async function targetOrFailure(on: Queryable, platformUrl: string, input: string): Promise<string> {
  const [target = LOOP] = await readTargets(on, platformUrl, [input]);
  if ('problem' in target) throw failure('INVALID_FIELD', target.problem);
  return target.url;
}

/** Where the URL leads when it looks like a scan URL. */
function scanHost(url: string): URL | undefined {
  if (!/\/r\//.test(url)) return undefined;
  const parsed = new URL(url);
  const shortCode = /^\/r\/([^/]+)\/?$/.exec(parsed.pathname)?.[1];
  // With a dot at its end a name is the same name, spelled out to the root.
  parsed.hostname = parsed.hostname.replace(/\.$/, '');
  return shortCode !== undefined && SHORT_CODE.test(shortCode) ? parsed : undefined;
}
