import { Resolver } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import type { DomainStateName } from '../../common/contract/names.ts';
import { type DomainEntity, txtName, txtValue } from './domain.ts';

/** Where domains have to lead, and who is asked whether they do. */
export interface Platform {
  /** The hostname of `PUBLIC_URL`: what a CNAME has to name. */
  readonly host: string;
  /** What address records have to hold, where a CNAME is not possible. */
  readonly addresses: readonly string[];
  /** `address` or `address:port`; none means the system's. */
  readonly resolvers: readonly string[];
}

/** What DNS says of a domain in the state `from`. */
export interface Seen {
  readonly from: DomainStateName;
  /** Whether its TXT record is there; asked of pending domains only. */
  readonly proven: boolean;
  /** Whether it resolves to the platform; undefined where that was not asked. */
  readonly resolves: boolean | undefined;
  /** What is missing, as a sentence; empty when nothing is. */
  readonly problem: string;
}

/** The resolvers did not say whether a record is there. */
export class ResolversUnavailable extends Error {
  override readonly name = 'ResolversUnavailable';
}

/** Each attempt, in ms; twice a resolver. */
const TIMEOUT_MS = 1_500;
const TRIES = 2;

/** Aliases of aliases that are followed. */
const MOST_HOPS = 8;

/** Answers that say "no such record"; anything else says nothing about the record. */
const NONE = new Set(['ENOTFOUND', 'ENODATA']);

/**
 * Looks up what a domain in its state waits for. Rejects with `ResolversUnavailable` when nobody answers, and when `signal`
 * is aborted.
 */
export async function lookUp(
  { hostname, token, state }: Pick<DomainEntity, 'hostname' | 'token' | 'state'>,
  platform: Platform,
  signal: AbortSignal,
): Promise<Seen> {
  signal.throwIfAborted();
  const resolver = new Resolver({ timeout: TIMEOUT_MS, maxTimeout: TIMEOUT_MS, tries: TRIES });
  if (platform.resolvers.length > 0) resolver.setServers(platform.resolvers);
  const cancel = () => resolver.cancel();
  signal.addEventListener('abort', cancel);
  try {
    const problem = state === 'pending' ? await missingProof(resolver, hostname, token) : '';
    if (problem !== '') return { from: state, proven: false, resolves: undefined, problem };
    const detour = await leadsElsewhere(resolver, hostname, platform);
    return { from: state, proven: true, resolves: detour === '', problem: detour };
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

async function missingProof(resolver: Resolver, hostname: string, token: string): Promise<string> {
  const name = txtName(hostname);
  const records = await recordsOf(resolver.resolveTxt(name));
  if (records.length === 0) return `There is no TXT record at ${name} yet.`;
  // A long text may be cut into several strings of one record.
  const holds = records.some((strings) => strings.join('').trim() === txtValue(token));
  return holds ? '' : `The TXT record at ${name} does not hold ${txtValue(token)}.`;
}

async function leadsElsewhere(resolver: Resolver, hostname: string, platform: Platform): Promise<string> {
  let name = hostname;
  for (let hop = 0; hop < MOST_HOPS; hop++) {
    const [alias] = await recordsOf(resolver.resolveCname(name));
    if (alias === undefined) break;
    name = alias.toLowerCase().replace(/\.$/, '');
    if (name === platform.host) return '';
  }
  const [four, six] = await Promise.all([
    recordsOf(resolver.resolve4(hostname)),
    recordsOf(resolver.resolve6(hostname)),
  ]);
  const addresses = [...four, ...six];
  const where = `Let ${hostname} be a CNAME for ${platform.host}${
    platform.addresses.length > 0 ? `, or give it no addresses but ${platform.addresses.join(', ')}` : ''
  }.`;
  if (addresses.length === 0) return `${hostname} has no address yet. ${where}`;
  const ours = new BlockList();
  for (const address of platform.addresses) ours.addAddress(address, familyOf(address));
  // One address that is somebody else's loses the readers who get that one.
  const others = addresses.filter((address) => !ours.check(address, familyOf(address)));
  return others.length === 0 ? '' : `${hostname} resolves to ${others.slice(0, 4).join(', ')}. ${where}`;
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIP(address) === 6 ? 'ipv6' : 'ipv4';
}

async function recordsOf<Value>(asked: Promise<Value[]>): Promise<Value[]> {
  try {
    return await asked;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== undefined && NONE.has(code)) return [];
    throw new ResolversUnavailable(`no answer about a record (${code})`, { cause: error });
  }
}
