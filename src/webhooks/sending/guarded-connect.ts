import { Resolver } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { buildConnector } from 'undici';
import { isPublicAddress } from '../../../common/runtime/public-address.ts';
import { acceptContinue } from './accept-continue.ts';
import { limitResponse } from './limit-response.ts';

const CONNECT_TIMEOUT_MS = 10_000;
/** The timeout of each query to each name server, in ms. */
const DNS_TIMEOUT_MS = 2_000;
const DNS_TRIES = 2;

/** A request was rejected because it would have connected to an address that is not on the public Internet. */
export class AddressRejected extends Error {
  constructor() {
    super('The address is not on the public Internet.');
  }
}

/**
 * Connects to public addresses only. A host name is resolved once for each connection, and the addresses that are
 * checked are those connected to, so DNS rebinding has no effect. One non-public address among several rejects them
 * all.
 *
 * Names are resolved by direct queries to the name servers. `getaddrinfo` would also read `/etc/hosts`, and would
 * occupy the few threads that all file operations and look-ups of the process share: one name whose servers hang would
 * delay others.
 *
 * `resolvers`: `address` or `address:port`; an empty list means the system’s.
 */
export function guardedConnect(resolvers: readonly string[]): buildConnector.connector {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, maxTimeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  if (resolvers.length > 0) resolver.setServers(resolvers);
  const connect = connector({ lookup: guardedLookup(resolver) });
  return (options, callback) => {
    // An IP address is not looked up. URL parsing has brought all its notations into one canonical form.
    if (isIP(options.hostname) !== 0 && !isPublicAddress(options.hostname)) callback(new AddressRejected(), null);
    else connect(options, callback);
  };
}

/** Connects to any address, with the system's name resolution. For local runs. */
export function unguardedConnect(): buildConnector.connector {
  return connector({});
}

function connector(options: buildConnector.BuildOptions): buildConnector.connector {
  return limitResponse(acceptContinue(buildConnector({ allowH2: false, timeout: CONNECT_TIMEOUT_MS, ...options })));
}

function guardedLookup(resolver: Resolver): LookupFunction {
  return (hostname, options, callback) => {
    lookUp(resolver, hostname).then(
      (addresses) => {
        const [first] = addresses;
        if (!first) return callback(notFound(), '', 0);
        if (!addresses.every(({ address }) => isPublicAddress(address))) return callback(new AddressRejected(), '', 0);
        return options.all ? callback(null, addresses) : callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, '', 0),
    );
  };
}

async function lookUp(resolver: Resolver, hostname: string): Promise<{ address: string; family: 4 | 6 }[]> {
  const [four, six] = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  if (four.status === 'rejected' && six.status === 'rejected') throw four.reason;
  const addresses = (settled: typeof four, family: 4 | 6) =>
    settled.status === 'fulfilled' ? settled.value.map((address) => ({ address, family })) : [];
  return [...addresses(four, 4), ...addresses(six, 6)];
}

function notFound(): NodeJS.ErrnoException {
  return Object.assign(new Error('The host name has no addresses.'), { code: 'ENOTFOUND' });
}
