/** A valid host name; anything else (an IPv6 literal, junk of a custom scheme) is not shown. */
const HOST = /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/;

/**
 * The host of a `Referer` without `www.`; empty if there is none, as for a page without an address, which browsers call
 * `about:blank` (RFC 9110 §10.1.3); `unknown` if it cannot be parsed.
 */
export function referrerHost(referer: string): string {
  if (referer === '' || referer === 'about:blank') return '';
  return checkedHost(
    URL.parse(referer)
      ?.hostname.toLowerCase()
      .replace(/^www\./, '')
      .replace(/\.$/, '') ?? '',
  );
}

/** Returns a valid host name as it is, and `unknown` for any other text. */
export function checkedHost(host: string): string {
  return host.length <= 253 && HOST.test(host) ? host : 'unknown';
}
