import { isIP } from 'node:net';
import { isLonger } from '../../../common/codes/is-longer.ts';
import { MAX_NAME } from '../../../common/codes/web-address.ts';
import { failure } from '../../../common/contract/errors.ts';
import { isPublicAddress } from '../../../common/runtime/public-address.ts';

/** Longest URL, in characters. */
const MAX_CHARACTERS = 2_048;

const LOCAL_NAME = /^(.+\.)?localhost\.?$/;

/**
 * Validates the URL of an endpoint: absolute, https, without credentials, and not on localhost or a private IP address.
 * The addresses of host names are checked when a request connects (`guarded-connect.ts`); rejecting obvious ones here
 * reports the mistake early. `allowPrivate` also permits http and private addresses. Returns the URL as sent, trimmed.
 */
export function readEndpointUrl(input: string, allowPrivate: boolean): string {
  const url = input.trim();
  const scheme = allowPrivate ? /^https?:\/\/[^/?#]/i : /^https:\/\/[^/?#]/i;
  // The URL parser would drop control characters and accept `https:host`; both are probably mistakes.
  if (!scheme.test(url) || /[\s\p{Cc}\\]/u.test(url) || !URL.canParse(url)) {
    throw failure('INVALID_FIELD', `url: must be an absolute ${allowPrivate ? 'http or https' : 'https'} address.`);
  }
  if (isLonger(url, MAX_CHARACTERS)) {
    throw failure('INVALID_FIELD', `url: must have at most ${MAX_CHARACTERS} characters.`);
  }
  const { hostname, username, password } = new URL(url);
  if (username !== '' || password !== '') {
    throw failure('INVALID_FIELD', 'url: must not carry a user name or password.');
  }
  if (hostname.replace(/\.$/, '').length > MAX_NAME) {
    throw failure('INVALID_FIELD', `url: its host must have at most ${MAX_NAME} characters in ASCII.`);
  }
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const local = LOCAL_NAME.test(host) || (isIP(host) !== 0 && !isPublicAddress(host));
  if (local && !allowPrivate) {
    throw failure('INVALID_FIELD', 'url: must be an address on the public Internet.');
  }
  return url;
}
