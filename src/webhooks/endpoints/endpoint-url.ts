import { isIP } from 'node:net';
import { parseWebAddress, webAddressSentence } from '../../../common/codes/web-address.ts';
import { failure } from '../../../common/contract/errors.ts';
import { isPublicAddress } from '../../../common/runtime/public-address.ts';

const LOCAL_NAME = /^(.+\.)?localhost\.?$/;

/**
 * Validates the URL of an endpoint: absolute, https, without credentials, and not on localhost or a private IP address.
 * The addresses of host names are checked when a request connects (`guarded-connect.ts`); rejecting obvious ones here
 * reports the mistake early. `allowPrivate` also permits http and private addresses. Returns the URL as sent, trimmed.
 */
export function readEndpointUrl(input: string, allowPrivate: boolean): string {
  const address = parseWebAddress(input);
  if ('problem' in address) throw failure('INVALID_FIELD', `url: ${webAddressSentence(address.problem)}`);
  const { url, hostname } = address;
  if (allowPrivate) return url;
  if (!/^https:/i.test(url)) throw failure('INVALID_FIELD', 'url: must be an https URL.');
  const host = hostname.replace(/^\[(.*)\]$/, '$1');
  if (LOCAL_NAME.test(host) || (isIP(host) !== 0 && !isPublicAddress(host))) {
    throw failure('INVALID_FIELD', 'url: must be an address on the public Internet.');
  }
  return url;
}
