import { domainToUnicode } from 'node:url';

/**
 * Whether the internationalised labels of a host are valid Punycode: the URL parser also accepts `xn--a`, which
 * `domainToUnicode` leaves unchanged. `hostname`: as `URL.hostname` returns it.
 */
export function hasValidPunycode(hostname: string): boolean {
  return hostname.split('.').every((label) => !(label.startsWith('xn--') && domainToUnicode(label) === label));
}
