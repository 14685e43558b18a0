import { parseWebAddress, webAddressSentence } from '../../../common/codes/web-address.ts';
import { failure } from '../../../common/contract/errors.ts';
import { SHORT_CODE } from '../../../common/contract/short-code.ts';
import { type Queryable, run, statement } from '../../../common/postgres/sql.ts';
import type { IsPlatformHost } from './platform-hosts.ts';
import { hasValidPunycode } from './web-host.ts';

/**
 * Verified domains of all accounts, removed ones too, whose scans are still answered, and all domains of the account
 * $2: before they are verified, the platform answers scans there. Those of others do not count, as anybody may add any
 * hostname. Indexes: verified_hostnames_pkey, domains_of_account.
 */
const customHosts = statement<{ hostname: string }>(
  'codes_custom_hosts',
  `select hostname from verified_hostnames where hostname = any($1)
   union all select hostname from domains where hostname = any($1) and account_id = $2`,
);

/** A valid target, or a sentence that says why it is invalid. */
export type Target = { readonly url: string } | { readonly problem: string };

const LOOP: Target = { problem: 'target_url: must not be a scan URL of this platform.' };

/**
 * Validates targets: web addresses that are not scan URLs of this platform, which would cause a redirect loop. Targets
 * are stored as they were sent, but trimmed. Returns one result per input, in order. `accountId`, here and below: UUID.
 */
export async function readTargets(
  on: Queryable,
  isPlatformHost: IsPlatformHost,
  accountId: string,
  inputs: readonly string[],
): Promise<Target[]> {
  const targets = inputs.map((input) => readWebAddress('target_url', input));
  const hosts = targets.map((target) => ('url' in target ? scanHost(target.url) : undefined));
  const candidates = [...new Set(hosts.flatMap((host) => host ?? []))];
  const found = candidates.length === 0 ? [] : await run(on, customHosts, [candidates, accountId]);
  const custom = new Set(found.map(({ hostname }) => hostname));
  return targets.map((target, index) => {
    const host = hosts[index];
    return host !== undefined && (isPlatformHost(host) || custom.has(host)) ? LOOP : target;
  });
}

/**
 * Validates and trims an absolute http or https URL without credentials. `field`: the field that a problem mentions.
 */
export function readWebAddress(field: string, input: string): Target {
  const read = parseWebAddress(input);
  if ('problem' in read) return { problem: `${field}: ${webAddressSentence(read.problem)}` };
  return hasValidPunycode(read.hostname) ? { url: read.url } : { problem: `${field}: ${webAddressSentence('host')}` };
}

/** Validates one target. Fails with INVALID_FIELD. */
export async function targetOrFailure(
  on: Queryable,
  isPlatformHost: IsPlatformHost,
  accountId: string,
  input: string,
): Promise<string> {
  const [target = LOOP] = await readTargets(on, isPlatformHost, accountId, [input]);
  if ('problem' in target) throw failure('INVALID_FIELD', target.problem);
  return target.url;
}

/** The host of a URL whose path is that of a scan URL, without a trailing dot; otherwise undefined. */
function scanHost(url: string): string | undefined {
  // Most targets contain neither and need no second parsing. Percent signs matter because some proxies decode paths.
  if (!/\/r\/|%/.test(url)) return undefined;
  const { pathname, hostname } = new URL(url);
  const shortCode = /^\/r\/([^/]+)\/?$/.exec(decoded(pathname))?.[1];
  return shortCode !== undefined && SHORT_CODE.test(shortCode) ? hostname.replace(/\.$/, '') : undefined;
}

function decoded(path: string): string {
  return path.replace(/%[2-7][0-9a-f]/gi, (byte) => String.fromCharCode(Number.parseInt(byte.slice(1), 16)));
}
