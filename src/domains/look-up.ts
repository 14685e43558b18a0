import { Resolver } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import type { DomainStateName } from '../../common/contract/names.ts';
import { isPublicAddress, withoutNat64 } from '../../common/runtime/public-address.ts';
import { type DomainEntity, txtName, txtValue } from './domain.ts';
import { DOMAIN_PROBLEMS } from './problems.ts';

/** What domains have to resolve to, and the resolvers that are queried. */
export interface Platform {
  /** The hostname of `PUBLIC_URL`, the required target of a CNAME. */
  readonly host: string;
  /** Values allowed in A and AAAA records, where a CNAME is not possible. */
  readonly addresses: readonly string[];
  /** Each `address` or `address:port`; an empty list means the system's resolvers. */
  readonly resolvers: readonly string[];
}

/** What DNS returned for a domain in the state `from`. */
export interface DnsResult {
  readonly from: DomainStateName;
  /** Whether its TXT record exists; queried only for pending domains. */
  readonly proven: boolean;
  /** Whether it resolves to the platform; undefined if that was not queried. */
  readonly resolves: boolean | undefined;
  /** What is missing, as a sentence; empty when nothing is. */
  readonly problem: string;
}

/** The resolvers did not answer whether a record exists. */
export class ResolversUnavailable extends Error {
  override readonly name = 'ResolversUnavailable';
}

/** The timeout of each attempt, in ms; every resolver is tried twice. */
const TIMEOUT_MS = 1_500;
const TRIES = 2;

/**
 * The timeout of a look-up with all its queries, in ms: others wait for it, and its name servers decide how long each
 * query takes.
 */
const TOTAL_MS = 15_000;

/** Longest chain of CNAME records that is followed. */
const MAX_CNAME_HOPS = 8;

/** Error codes that mean "no such record"; any other error does not show whether it exists. */
const NO_RECORD = new Set(['ENOTFOUND', 'ENODATA']);

/**
 * Looks up the DNS records that decide the next state of a domain. Rejects with `ResolversUnavailable` when no resolver
 * answers, after `TOTAL_MS`, and when `signal` is aborted.
 */
export async function lookUp(
  { hostname, token, state }: Pick<DomainEntity, 'hostname' | 'token' | 'state'>,
  platform: Platform,
  signal: AbortSignal,
): Promise<DnsResult> {
  signal.throwIfAborted();
  const resolver = new Resolver({ timeout: TIMEOUT_MS, maxTimeout: TIMEOUT_MS, tries: TRIES });
  if (platform.resolvers.length > 0) resolver.setServers(platform.resolvers);
  const cancel = () => resolver.cancel();
  signal.addEventListener('abort', cancel);
  const timer = setTimeout(cancel, TOTAL_MS);
  try {
    const problem = state === 'pending' ? await proofProblem(resolver, hostname, token) : '';
    if (problem !== '') return { from: state, proven: false, resolves: undefined, problem };
    const unresolved = await addressProblem(resolver, hostname, platform);
    return { from: state, proven: true, resolves: unresolved === '', problem: unresolved };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', cancel);
  }
}

async function proofProblem(resolver: Resolver, hostname: string, token: string): Promise<string> {
  const name = txtName(hostname);
  const records = await recordsOf(resolver.resolveTxt(name));
  if (records.length === 0) return DOMAIN_PROBLEMS.noTxt(name);
  // A long text may be split into several strings of one record.
  const matches = records.some((strings) => strings.join('').trim() === txtValue(token));
  return matches ? '' : DOMAIN_PROBLEMS.otherTxt(name, txtValue(token));
}

async function addressProblem(resolver: Resolver, hostname: string, platform: Platform): Promise<string> {
  let name = hostname;
  for (let hop = 0; hop < MAX_CNAME_HOPS; hop++) {
    const [alias] = await recordsOf(resolver.resolveCname(name));
    if (alias === undefined) break;
    name = alias.toLowerCase().replace(/\.$/, '');
    if (name === platform.host) return '';
  }
  const [four, six] = await Promise.all([
    recordsOf(resolver.resolve4(hostname)),
    recordsOf(resolver.resolve6(hostname)),
  ]);
  // DNS64 adds an IPv6 address for each IPv4 address of a host that has none.
  const addresses = [...new Set([...four, ...six].map(withoutNat64))];
  const remedy = DOMAIN_PROBLEMS.remedy(hostname, platform.host, platform.addresses);
  if (addresses.length === 0) return DOMAIN_PROBLEMS.noAddress(hostname, remedy);
  const platformAddresses = new BlockList();
  for (const address of platform.addresses) platformAddresses.addAddress(address, familyOf(address));
  // A single foreign address fails the scans of all clients that pick it.
  const foreign = addresses.filter((address) => !platformAddresses.check(address, familyOf(address)));
  if (foreign.length === 0) return '';
  const shown = foreign.filter(isPublicAddress);
  return DOMAIN_PROBLEMS.foreignAddresses(hostname, shown.slice(0, 4), shown.length < foreign.length, remedy);
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}

async function recordsOf<Value>(query: Promise<Value[]>): Promise<Value[]> {
  try {
    return await query;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== undefined && NO_RECORD.has(code)) return [];
    throw new ResolversUnavailable(`no answer about a record (${code})`, { cause: error });
  }
}
