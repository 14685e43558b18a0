import { isIP } from 'node:net';
import { domainToUnicode } from 'node:url';

/** RFC 1035, section 2.3.4, without the dot of the root. */
const MAX_NAME = 253;

/** No letters of other scripts: the URL parser has put those into their ASCII form. Underscores occur in real names. */
const LABEL = /^[a-z0-9_-]{1,63}$/;

/**
 * Whether a resolver could look a host up, or a browser connect to it: a name of the DNS, or an IP address. The URL
 * parser lets `a..b` and `xn--a` pass. `hostname`: as `URL.hostname` has it.
 */
export function isUsableHost(hostname: string): boolean {
  if (hostname.startsWith('[') || isIP(hostname) !== 0) return true;
  const name = hostname.replace(/\.$/, '');
  return name.length <= MAX_NAME && name.split('.').every(isUsableLabel);
}

function isUsableLabel(label: string): boolean {
  // What stands for no text in another script stays as it is.
  return LABEL.test(label) && !(label.startsWith('xn--') && domainToUnicode(label) === label);
}
