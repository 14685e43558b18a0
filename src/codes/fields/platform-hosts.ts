import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Whether a host is the platform itself. `hostname`: as `URL.hostname` returns it. */
export type IsPlatformHost = (hostname: string) => boolean;

const LOCALHOST = /^(.+\.)?localhost$/;
const LOCAL_RANGES: ReadonlySet<string> = new Set(['loopback', 'unspecified']);

/**
 * Recognises the host of `platformUrl` and the platform's IP addresses (`addresses`) in every spelling. Ports are
 * ignored, because a proxy on any port may forward to a gateway, whose redirect would loop. If the platform runs on
 * `localhost`, all loopback and unspecified addresses and all names under `localhost` count.
 */
export function platformHosts(platformUrl: string, addresses: readonly string[]): IsPlatformHost {
  const hosts = new Set([new URL(platformUrl).hostname, ...addresses].map(canonical));
  return (hostname) => hosts.has(canonical(hostname));
}

/** The canonical spelling of a host: names without the trailing dot, IPv4-mapped IPv6 addresses as IPv4. */
function canonical(hostname: string): string {
  const host = hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
  if (isIP(host) === 0) return LOCALHOST.test(host) ? 'localhost' : host;
  const address = ipaddr.process(host);
  return LOCAL_RANGES.has(address.range()) ? 'localhost' : address.toString();
}
