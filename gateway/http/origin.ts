import { BlockList, isIP, SocketAddress } from 'node:net';
import { unmapped } from '../../common/http/client-of.ts';

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
    const { node, host: requested = host } = forwardedBy(headers, isProxy);
    return { hostname: hostnameIn(requested), address: addressIn(node) || peer, proxied: true };
  };
}

/** What the outermost trusted proxy has reported of a request: its client's node identifier, and the requested host. */
interface Forwarded {
  readonly node: string;
  readonly host: string | undefined;
}

/**
 * Reads `X-Forwarded-For` and `X-Forwarded-Host`, and `Forwarded` (RFC 7239) only if both are absent: nearly all
 * proxies write the older headers and pass on a `Forwarded` that the client may have forged.
 *
 * Every trusted proxy appends its peer's address: the last one that is no trusted proxy is the client's. What is before
 * it may be forged.
 */
function forwardedBy(headers: OriginHeaders, isProxy: (address: string) => boolean): Forwarded {
  const { forwarded, 'x-forwarded-for': xFor, 'x-forwarded-host': xHost } = headers;
  if (forwarded !== undefined && xFor === undefined && xHost === undefined) return readForwarded(forwarded, isProxy);
  const nodes = valuesIn(xFor);
  return {
    node: nodes.findLast((each) => !isProxy(addressIn(each))) ?? '',
    host: xHost === undefined ? undefined : valuesIn(xHost).at(-1),
  };
}

function valuesIn(field: string | string[] = ''): string[] {
  return [field]
    .flat()
    .join(',')
    .split(',')
    .map((each) => each.trim());
}

/** The client and the host that the element of the client names, or else one of the trusted proxies behind it. */
function readForwarded(field: string, isProxy: (address: string) => boolean): Forwarded {
  let host: string | undefined;
  for (const element of elementsFromLast(field)) {
    // Source: RFC 9110, section 5.6.1.2.
    if (element.trim() === '') continue;
    const { for: node = '', host: named = host } = readElement(element);
    host = named;
    if (!isProxy(addressIn(node))) return { node, host };
  }
  return { node: '', host };
}

/**
 * The elements of a `Forwarded`, last one first: a quote that a client has left open must not hide what proxies append.
 */
function* elementsFromLast(field: string): Generator<string> {
  let end = field.length;
  let isQuoted = false;
  for (let at = end - 1; at >= 0; at--) {
    if (field[at] === '"') {
      if (!isQuoted || !isEscaped(field, at)) isQuoted = !isQuoted;
    } else if (field[at] === ',' && !isQuoted) {
      yield field.slice(at + 1, end);
      end = at;
    }
  }
  yield field.slice(0, end);
}

/** Whether an odd number of backslashes precedes a character. */
function isEscaped(text: string, at: number): boolean {
  let start = at;
  while (text[start - 1] === '\\') start--;
  return (at - start) % 2 === 1;
}

/** A pair of an element, such as `for="[2001:db8::1]:80"`, or nothing; and what ends it. */
const PAIR = /\s*(?:([^\s=;"]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))\s*)?(?:;|$)/y;

/** The values of an element by their names in lower case, up to the first malformed pair. */
function readElement(element: string): Readonly<Record<string, string | undefined>> {
  const values: Record<string, string> = {};
  for (PAIR.lastIndex = 0; PAIR.lastIndex < element.length; ) {
    const [pair, name = '', quoted, plain = ''] = PAIR.exec(element) ?? [];
    if (pair === undefined) break;
    values[name.toLowerCase()] ??= quoted?.replace(/\\(.)/g, '$1') ?? plain;
  }
  return values;
}

/**
 * The address in a node identifier such as `192.0.2.1:80` or `[2001:db8::1]:80`, in the form that sockets report; empty
 * for `unknown` and obfuscated ones.
 */
function addressIn(node: string): string {
  const given = node.startsWith('[') ? node.slice(1, node.indexOf(']')) : isIP(node) ? node : node.replace(/:\d+$/, '');
  // With the zone, Node can't read some of the addresses that `isIP` accepts.
  const bare = given.replace(/%.*$/, '');
  if (isIP(bare) === 6) return unmapped(new SocketAddress({ address: bare, family: 'ipv6' }).address);
  return isIP(bare) ? bare : '';
}

/**
 * Returns the hostname that browsers connect to: every spelling of a custom domain has to be found as that domain. A
 * port may be empty (RFC 3986 §3.2.3); the URL parser decodes percent-encoded letters. Text that it rejects is no
 * domain.
 */
function hostnameOf(host: string): string {
  const name = host.replace(/:\d*$/, '');
  // Without the look-behind, a host of many dots takes quadratic time.
  return (URL.parse(`http://${name}`)?.hostname ?? name.toLowerCase()).replace(/(?<!\.)\.+$/, '');
}
