import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Azure's metadata service: in a globally routed range, and so in no list of special-purpose ranges. */
const AZURE_METADATA = '168.63.129.16';

/** The only IPv6 range that IANA allocates from for global unicast. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/**
 * Where DNS64 puts IPv4 addresses of hosts without IPv6, for NAT64. The system connects to the IPv4 address in the last
 * 32 bits. Source: RFC 6052, section 2.1.
 */
const NAT64 = ipaddr.IPv6.parseCIDR('64:ff9b::/96');

/**
 * Whether an IP address is on the public Internet: not private, loopback, link-local, shared, reserved or a cloud's
 * metadata service, nor an IPv6 address that embeds such an IPv4 address, in any notation. A NAT64 prefix of the
 * operator's own is not known.
 */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0) return false;
  const parsed = reached(address);
  if (parsed.range() !== 'unicast') return false;
  return parsed instanceof ipaddr.IPv6 ? parsed.match(GLOBAL_UNICAST) : parsed.toString() !== AZURE_METADATA;
}

/** The IPv4 address that NAT64 connects to for an IPv6 address in its range; others are returned unchanged. */
export function withoutNat64(address: string): string {
  const parsed = reached(address);
  return parsed instanceof ipaddr.IPv4 ? parsed.toString() : address;
}

/** The address that the system connects to: IPv4-mapped addresses and those of NAT64 are reached over IPv4. */
function reached(address: string): ipaddr.IPv4 | ipaddr.IPv6 {
  const parsed = ipaddr.process(address);
  const isNat64 = parsed instanceof ipaddr.IPv6 && parsed.match(NAT64);
  return isNat64 ? ipaddr.fromByteArray(parsed.toByteArray().slice(-4)) : parsed;
}
