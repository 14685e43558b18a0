import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';

/** A registered name or IPv4 address, or an IPv6 address in brackets, and a port (RFC 3986 §3.2.2, §3.2.3). */
const HOST = /^(?:(?:[\w.~!$&'()*+,;=-]|%[\dA-Fa-f]{2})+|\[([\dA-Fa-f:.]+)\])(?::\d{0,5})?$/;

/** The absolute form of a target, which clients send to proxies (RFC 9112 §3.2.2). */
const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/is;

/** Whether text is a valid `Host` header value. An empty host is syntactically valid, but not accepted here. */
export function isHost(text: string): boolean {
  const host = HOST.exec(text);
  return host !== null && (host[1] === undefined || isIPv6(host[1]));
}

/**
 * Normalizes a request for the rest of the gateway: a path in `url`, and the requested host in `headers.host`. Returns
 * an error sentence for the client where RFC 9112 §3.2 requires a 400, else undefined.
 */
export function normalizeRequest(request: IncomingMessage): string | undefined {
  const { headers, httpVersion, rawHeaders, url = '' } = request;
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.length === 4 && /^host$/i.test(name)).length;
  if (hosts === 0 && httpVersion === '1.1') return 'The request has no host: send a Host header.';
  if (hosts > 1) return 'The request has more than one Host header.';
  if (hosts === 1 && !isHost(headers.host ?? '')) return 'The Host header is not a valid host.';
  if (url.startsWith('/') || (url === '*' && request.method === 'OPTIONS')) return undefined;
  const [, host, path = ''] = ABSOLUTE.exec(url) ?? [];
  if (host === undefined || !isHost(host)) return 'The target of the request is neither a path nor an http address.';
  headers.host = host;
  request.url = path.startsWith('/') ? path : `/${path}`;
  return undefined;
}
