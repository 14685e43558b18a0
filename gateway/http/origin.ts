import { BlockList, isIP, SocketAddress } from 'node:net';

/** The client and the requested host: taken from the connection, or from a trusted proxy's headers. */
export interface Origin {
  /** The requested host, in lower case, without a port and trailing dots. */
  readonly hostname: string;
  readonly address: string;
  /** Whether a trusted proxy forwarded the request. */
  readonly proxied: boolean;
}

/** The request headers that it is read from; a subset of `IncomingHttpHeaders`. */
export interface OriginHeaders {
  readonly host?: string | undefined;
  readonly forwarded?: string | undefined;
  readonly [name: string]: string | string[] | undefined;
}

/** Returns a predicate for socket addresses of trusted proxies. `trusted`: their addresses and CIDR networks. */
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

/** Returns a function that determines a request's origin. `trusted`: addresses and CIDR networks of proxies. */
export function originReader(trusted: readonly string[]): (peer: string, headers: OriginHeaders) => Origin {
  const isProxy = proxiesIn(trusted);

  /** The last `Host` value and its normalized form: it is nearly always the same one. */
  let [lastHost, lastHostname] = ['', ''];

  function hostnameIn(host: string): string {
    if (host !== lastHost) [lastHost, lastHostname] = [host, hostnameOf(host)];
    return lastHostname;
  }

  return (socketAddress, headers) => {
    const peer = unmapped(socketAddress);
    const host = headers.host ?? '';
    if (!isProxy(peer)) return { hostname: hostnameIn(host), address: peer, proxied: false };
    const forwarded = readForwarded(headers);
    // Every trusted proxy appends its peer's address; the last address that is no trusted proxy is the client's.
    const node = forwarded.nodes.findLast((each) => !isProxy(addressIn(each)));
    return { hostname: hostnameIn(forwarded.host ?? host), address: addressIn(node ?? '') || peer, proxied: true };
  };
}

/**
 * Reads `X-Forwarded-For` and `X-Forwarded-Host`, and `Forwarded` (RFC 7239) only if both are absent: nearly all proxies
 * write the older headers and pass on a `Forwarded` that the client may have forged.
 */
function readForwarded(headers: OriginHeaders): { nodes: string[]; host: string | undefined } {
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

/**
 * The address in a node identifier such as `192.0.2.1:80` or `[2001:db8::1]:80`, in the form that sockets report; empty for
 * `unknown` and obfuscated ones.
 */
function addressIn(node: string): string {
  const given = node.startsWith('[') ? node.slice(1, node.indexOf(']')) : isIP(node) ? node : node.replace(/:\d+$/, '');
  // With the zone, Node can't read some of the addresses that `isIP` accepts.
  const bare = given.replace(/%.*$/, '');
  if (isIP(bare) === 6) return unmapped(new SocketAddress({ address: bare, family: 'ipv6' }).address);
  return isIP(bare) ? bare : '';
}

/** Turns an IPv4-mapped IPv6 address into the IPv4 address; returns any other address unchanged. */
export function unmapped(address: string): string {
  return address.startsWith('::ffff:') && isIP(address.slice(7)) === 4 ? address.slice(7) : address;
}

/**
 * Returns the hostname that browsers connect to: every spelling of a custom domain has to be found as that domain. A port
 * may be empty (RFC 3986 §3.2.3); the URL parser decodes percent-encoded letters. Text that it rejects is no domain.
 */
function hostnameOf(host: string): string {
  const name = host.replace(/:\d*$/, '');
  // Without the look-behind, a host of many dots takes quadratic time.
  return (URL.parse(`http://${name}`)?.hostname ?? name.toLowerCase()).replace(/(?<!\.)\.+$/, '');
}
