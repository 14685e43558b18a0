/** What a host may be made of; anything else (an IPv6 literal, junk of a custom scheme) is no name to show. */
const HOST = /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/;

/** The host of a `Referer` without `www.`; `direct` when there is none, `unknown` when it can't be read. */
export function referrerOf(referer: string): string {
  if (referer === '') return 'direct';
  const host =
    URL.parse(referer)
      ?.hostname.toLowerCase()
      .replace(/^www\./, '') ?? '';
  return host.length <= 253 && HOST.test(host) ? host : 'unknown';
}
