import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/**
 * The client that an address counts as: the IPv4 address, also if it is mapped into IPv6, or the /64 of an IPv6
 * address, as one subscriber has all of it.
 */
export function clientOf(address: string): string {
  const bare = unmapped(address);
  if (!bare.includes(':')) return bare;
  try {
    const parsed = ipaddr.process(bare);
    return parsed.kind() === 'ipv6' ? parsed.toByteArray().slice(0, 8).join('.') : parsed.toString();
  } catch {
    return bare;
  }
}

/** Turns an IPv4-mapped IPv6 address, as sockets report it, into the IPv4 address; returns any other one unchanged. */
export function unmapped(address: string): string {
  return address.startsWith('::ffff:') && isIP(address.slice(7)) === 4 ? address.slice(7) : address;
}
