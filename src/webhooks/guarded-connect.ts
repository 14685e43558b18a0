import { Resolver } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { isPublicAddress } from './public-address.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** For each try of each name server. */
const DNS_TIMEOUT_MS = 2_000;
const DNS_TRIES = 2;

/** A request was refused because it would have gone to an address that is not of the public Internet. */
export class AddressRefused extends Error {
  constructor() {
    super('The address is not one of the public Internet.');
  }
}

/**
 * Connects to public addresses only. A name is looked up once for every connection, and what was looked up is what is
 * judged and connected to, so a name that changes its address meanwhile gains nothing. One bad address among several
 * refuses them all.
 *
 * Names are asked of the name servers themselves. `getaddrinfo` would also read `/etc/hosts`, and it would occupy the
 * few threads that all files and names of the process share, so that one name whose servers hang would delay others.
 *
 * `resolvers`: `address` or `address:port`; none means the system’s.
 */
export function guardedConnect(resolvers: readonly string[]): buildConnector.connector {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  if (resolvers.length > 0) resolver.setServers(resolvers);
  const connect = buildConnector({ allowH2: false, timeout: CONNECT_TIMEOUT_MS, lookup: guardedLookup(resolver) });
  return (options, callback) => {
    // No name, no lookup. URLs have every notation of an address in its one canonical form here.
    if (isIP(options.hostname) !== 0 && !isPublicAddress(options.hostname)) callback(new AddressRefused(), null);
    else connect(options, callback);
  };
}

/** Connects to any address, by any notation and name that the system knows. For local runs. */
export function unguardedConnect(): buildConnector.connector {
  return buildConnector({ allowH2: false, timeout: CONNECT_TIMEOUT_MS });
}

function guardedLookup(resolver: Resolver): LookupFunction {
  return (hostname, options, callback) => {
    lookUp(resolver, hostname).then(
      (addresses) => {
        const [first] = addresses;
        if (!first) return callback(notFound(), '', 0);
        if (!addresses.every(({ address }) => isPublicAddress(address))) return callback(new AddressRefused(), '', 0);
        return options.all ? callback(null, addresses) : callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, '', 0),
    );
  };
}

async function lookUp(resolver: Resolver, hostname: string): Promise<{ address: string; family: 4 | 6 }[]> {
  const [four, six] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  if (four.status === 'rejected' && six.status === 'rejected') throw four.reason;
  const of = (settled: typeof four, family: 4 | 6) =>
    settled.status === 'fulfilled' ? settled.value.map((address) => ({ address, family })) : [];
  return [...of(four, 4), ...of(six, 6)];
}

function notFound(): NodeJS.ErrnoException {
  return Object.assign(new Error('The name leads nowhere.'), { code: 'ENOTFOUND' });
}
