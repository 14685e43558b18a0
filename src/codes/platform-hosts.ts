import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Whether a host is the platform itself; `hostname`: as `URL.hostname` has it. */
export type IsPlatformHost = (hostname: string) => boolean;

const LOCALHOST = /^(.+\.)?localhost$/;
const LOCAL_RANGES: ReadonlySet<string> = new Set(['loopback', 'unspecified']);

/**
 * Recognises the host of `platformUrl` and the platform's addresses in every spelling, at every port: whatever forwards
 * to a gateway would answer with the redirect again. Where the platform runs on `localhost`, all of this machine's own
 * names and addresses count. `addresses`: IP addresses.
 */
export function platformHosts(platformUrl: string, addresses: readonly string[]): IsPlatformHost {
  const ours = new Set([new URL(platformUrl).hostname, ...addresses].map(canonical));
  return (hostname) => ours.has(canonical(hostname));
}

/** One spelling of a host: of a name without the dot of the root, of an address that of IPv4 where it carries one. */
function canonical(hostname: string): string {
  const host = hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
  if (isIP(host) === 0) return LOCALHOST.test(host) ? 'localhost' : host;
  const address = ipaddr.process(host);
  return LOCAL_RANGES.has(address.range()) ? 'localhost' : address.toString();
}
