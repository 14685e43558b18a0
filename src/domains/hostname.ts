import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';

/** Longest hostname: `_signpost.` before it must still be a name of at most 253 characters. */
const MOST_CHARACTERS = 243;

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** A hostname that a domain can be added by, or the sentence that says why it can't. */
export type Hostname = { readonly hostname: string } | { readonly problem: string };

/**
 * Reads what a person types as a domain: lower case, internationalised names in their ASCII form, without the dot of
 * the root. `platformHost`: our own host, which is nobody's domain.
 */
export function readHostname(input: string, platformHost: string): Hostname {
  const typed = input.trim();
  const refused = (problem: string) => ({ problem: `hostname: ${problem}` });
  if (isIP(typed.replace(/^\[(.*)\]$/, '$1')) !== 0) return refused('must be a name; an IP address is none.');
  if (/[/:@?#\\]/.test(typed)) {
    return refused('must be a hostname alone, such as menu.example.com, without a scheme, a port or a path.');
  }
  if (typed.includes('*')) return refused('must be one hostname; each host is added by itself, without a wildcard.');
  // The parser drops tabs and decodes `%41`; neither is what was meant. Other scripts have dots of their own.
  const hostname = /[\s\p{Cc}%]/u.test(typed) ? '' : domainToASCII(typed).replace(/\.$/, '');
  // The parser reads `127.1` as an address, and so do browsers.
  if (isIP(hostname) !== 0) return refused('must be a name; an IP address is none.');
  const labels = hostname.split('.');
  if (hostname === '' || !labels.every((label) => LABEL.test(label))) {
    return refused('must be a hostname such as menu.example.com.');
  }
  if (labels.length < 2) return refused('must have at least two labels, such as menu.example.com.');
  if (hostname.length > MOST_CHARACTERS) return refused(`must have at most ${MOST_CHARACTERS} characters.`);
  if (hostname === platformHost) {
    return refused(`${hostname} is the platform itself.`);
  }
  return { hostname };
}
