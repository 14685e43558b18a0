import { isIP } from 'node:net';
import { domainToUnicode } from 'node:url';

/** Maximum length of a name without the trailing dot. Source: RFC 1035, section 2.3.4. */
const MAX_NAME = 253;

/** Only ASCII: the URL parser has converted other scripts to their ASCII form. Underscores occur in real names. */
const LABEL = /^[a-z0-9_-]{1,63}$/;

/**
 * Whether a host is a valid DNS name or an IP address; the URL parser also accepts `a..b` and `xn--a`. `hostname`: as
 * `URL.hostname` returns it.
 */
export function isUsableHost(hostname: string): boolean {
  if (hostname.startsWith('[') || isIP(hostname) !== 0) return true;
  const name = hostname.replace(/\.$/, '');
  return name.length <= MAX_NAME && name.split('.').every(isUsableLabel);
}

function isUsableLabel(label: string): boolean {
  // `domainToUnicode` leaves labels that are not valid Punycode unchanged.
  return LABEL.test(label) && !(label.startsWith('xn--') && domainToUnicode(label) === label);
}
