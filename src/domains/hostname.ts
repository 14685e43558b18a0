import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';

/** Longest hostname: `_signpost.` before it must still be a name of at most 253 characters. */
const MAX_CHARACTERS = 243;

const LABEL = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** A hostname for a new domain, or the sentence that says why the input is not one. */
export type Hostname = { readonly hostname: string } | { readonly problem: string };

/**
 * Normalises a hostname that a person typed: lower case, internationalised names in their ASCII form, without the
 * root's dot. Rejects `platformHost`, the host of Signpost itself.
 */
export function readHostname(input: string, platformHost: string): Hostname {
  const typed = input.trim();
  const rejected = (problem: string) => ({ problem: `hostname: ${problem}` });
  if (isIP(typed.replace(/^\[(.*)\]$/, '$1')) !== 0) return rejected('must be a name, not an IP address.');
  if (/[/:@?#\\]/.test(typed)) {
    return rejected('must be only a hostname, such as menu.example.com, without a scheme, a port or a path.');
  }
  if (typed.includes('*')) return rejected('must be one hostname without a wildcard; add each host separately.');
  // The parser would drop tabs and decode `%41`. It also accepts the dots of other scripts.
  const hostname = /[\s\p{Cc}%]/u.test(typed) ? '' : domainToASCII(typed).replace(/\.$/, '');
  // The parser reads `127.1` as an IP address, as browsers do.
  if (isIP(hostname) !== 0) return rejected('must be a name, not an IP address.');
  const labels = hostname.split('.');
  if (hostname === '' || !labels.every((label) => LABEL.test(label))) {
    return rejected('must be a hostname such as menu.example.com.');
  }
  if (labels.length < 2) return rejected('must have at least two labels, such as menu.example.com.');
  if (hostname.length > MAX_CHARACTERS) return rejected(`must have at most ${MAX_CHARACTERS} characters.`);
  if (hostname === platformHost) {
    return rejected(`${hostname} is the platform itself.`);
  }
  return { hostname };
}
