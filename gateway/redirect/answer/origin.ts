import { BlockList, isIP } from 'node:net';
import type { ScanHeaders } from './scan-request.ts';

/** Who asked, and for which host: by the connection, or by a trusted proxy's word. */
export interface Origin {
  /** The host that was asked for, in lower case and without a port. */
  readonly hostname: string;
  readonly address: string;
  /** Whether a trusted proxy passed the request on. */
  readonly proxied: boolean;
}

/** Whether an address, as it stands on a socket, is one of `trusted`: addresses and networks of proxies. */
export function proxiesIn(trusted: readonly string[]): (address: string) => boolean {
  const proxies = new BlockList();
  for (const entry of trusted) {
    const [address = '', prefix] = entry.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (prefix === undefined) proxies.addAddress(address, family);
    else proxies.addSubnet(address, Number(prefix), family);
  }
  return (socketAddress) => {
    const address = unmapped(socketAddress);
    return trusted.length > 0 && isIP(address) !== 0 && proxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  };
}

/** Tells the origin of requests by the address at the other end. `trusted`: addresses and networks of proxies. */
export function originsBy(trusted: readonly string[]): (peer: string, headers: ScanHeaders) => Origin {
  const isProxy = proxiesIn(trusted);

  /** The host that was asked for last, as it is sent and as it is meant: it is nearly always the same one. */
  let [sent, meant] = ['', ''];

  function hostnameIn(host: string): string {
    if (host !== sent) [sent, meant] = [host, withoutPort(host)];
    return meant;
  }

  return (socketAddress, headers) => {
    const peer = unmapped(socketAddress);
    const host = headers.host ?? '';
    if (!isProxy(peer)) return { hostname: hostnameIn(host), address: peer, proxied: false };
    const told = forwardedOf(headers);
    // Every trusted proxy appends whom it saw; the last one that is not one of ours is the reader.
    const node = told.nodes.findLast((each) => !isProxy(addressIn(each)));
    return { hostname: hostnameIn(told.host ?? host), address: addressIn(node ?? '') || peer, proxied: true };
  };
}

/**
 * `X-Forwarded-For` and `X-Forwarded-Host`, and `Forwarded` (RFC 7239) where neither is there: nearly all proxies write
 * the older ones, and pass on a `Forwarded` as the reader made it up.
 */
function forwardedOf(headers: ScanHeaders): { nodes: string[]; host: string | undefined } {
  const { forwarded, 'x-forwarded-for': xFor, 'x-forwarded-host': xHost } = headers;
  if (forwarded !== undefined && xFor === undefined && xHost === undefined) {
    const values = (name: string) =>
      [...forwarded.matchAll(new RegExp(`(?:^|[;,\\s])${name}=(?:"([^"]*)"|([^;,\\s]*))`, 'gi'))].map(
        ([, quoted, plain]) => quoted ?? plain ?? '',
      );
    return { nodes: values('for'), host: values('host')[0] };
  }
  const listed = [xFor ?? []].flat().join(',');
  const host = [xHost ?? []].flat()[0]?.split(',')[0]?.trim();
  return { nodes: listed.split(',').map((each) => each.trim()), host };
}

/** The address in a node identifier: `192.0.2.1:80`, `[2001:db8::1]:80`; empty for `unknown` and obfuscated ones. */
function addressIn(node: string): string {
  const bare = node.startsWith('[') ? node.slice(1, node.indexOf(']')) : isIP(node) ? node : node.replace(/:\d+$/, '');
  const address = unmapped(bare);
  return isIP(address) ? address : '';
}

/** The address of a peer, where an IPv4 address arrived over an IPv6 socket as well. */
export function unmapped(address: string): string {
  return address.startsWith('::ffff:') && isIP(address.slice(7)) === 4 ? address.slice(7) : address;
}

function withoutPort(host: string): string {
  return host.toLowerCase().replace(/:\d+$/, '').replace(/\.$/, '');
}
