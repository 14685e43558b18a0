import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Globally routed, so that no list of special ranges has them, but answered by the host's own cloud: Azure's. */
const METADATA = '168.63.129.16';

/** What IANA has given out for the public Internet. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Whether an IP address is one of the public Internet: none that is private, loopback, link-local, shared, reserved or
 * a cloud's metadata service, and none of IPv6 that carries such an IPv4 address in it, however it is written.
 */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0) return false;
  // An IPv4 address in IPv6 is connected to by IPv4, so it is judged as such.
  const parsed = ipaddr.process(address);
  if (parsed.range() !== 'unicast') return false;
  return parsed instanceof ipaddr.IPv6 ? parsed.match(GLOBAL_UNICAST) : parsed.toString() !== METADATA;
}
