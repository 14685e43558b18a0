import { isIP } from 'node:net';
import { failure } from '../../common/contract/errors.ts';
import { isPublicAddress } from './public-address.ts';

/** Longest address, in characters. */
const MAX_CHARACTERS = 2_048;

const LOCAL_NAME = /^(.+\.)?localhost\.?$/;

/**
 * Reads the address of an endpoint: absolute, https, without credentials, and none that can't be public as it stands.
 * Names are judged by what they lead to each time that they are called (`guarded-connect.ts`); this only tells people
 * early. `allowPrivate` lifts both rules. It is stored as sent, trimmed.
 */
export function readEndpointUrl(input: string, allowPrivate: boolean): string {
  const url = input.trim();
  const scheme = allowPrivate ? /^https?:\/\/[^/?#]/i : /^https:\/\/[^/?#]/i;
  // The URL parser drops control characters and mends `https:host`; neither is what was meant.
  if (!scheme.test(url) || /[\s\p{Cc}\\]/u.test(url) || !URL.canParse(url)) {
    throw failure('INVALID_FIELD', `url: must be an absolute ${allowPrivate ? 'http or https' : 'https'} address.`);
  }
  if ([...url].length > MAX_CHARACTERS) {
    throw failure('INVALID_FIELD', `url: must have at most ${MAX_CHARACTERS} characters.`);
  }
  const { hostname, username, password } = new URL(url);
  if (username !== '' || password !== '') {
    throw failure('INVALID_FIELD', 'url: must not carry a user name or password.');
  }
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  const local = LOCAL_NAME.test(host) || (isIP(host) !== 0 && !isPublicAddress(host));
  if (local && !allowPrivate) {
    throw failure('INVALID_FIELD', 'url: must be an address on the public Internet.');
  }
  return url;
}
