/** What a host may be made of; anything else (an IPv6 literal, junk of a custom scheme) is no name to show. */
const HOST = /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/;

/** The host of a `Referer` without `www.`; empty when there is none, `unknown` when it cannot be read. */
export function referrerHost(referer: string): string {
  if (referer === '') return '';
  return checkedHost(
    URL.parse(referer)
      ?.hostname.toLowerCase()
      .replace(/^www\./, '') ?? '',
  );
}

/** A host as it may be shown in a report; `unknown` for any other text. */
export function checkedHost(host: string): string {
  return host.length <= 253 && HOST.test(host) ? host : 'unknown';
}
