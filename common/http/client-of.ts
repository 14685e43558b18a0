import ipaddr from 'ipaddr.js';

/**
 * The client that an address counts as: the IPv4 address, or the /64 of an IPv6 address, as one subscriber has all of
 * it.
 */
export function clientOf(address: string): string {
  if (!address.includes(':')) return address;
  try {
    const parsed = ipaddr.parse(address);
    return parsed.kind() === 'ipv6' ? parsed.toByteArray().slice(0, 8).join('.') : address;
  } catch {
    return address;
  }
}
