import { failure } from './errors.ts';

/** The prefix of every API key. Source: docs/contract.md, "Authentication". */
export const API_KEY_PREFIX = 'sk_live_';

/** The alphabet and length of a key after its prefix: 32 random bytes in base 62. */
export const API_KEY_DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
export const API_KEY_LENGTH = 43;

const SHAPE = new RegExp(`^${API_KEY_PREFIX}[${API_KEY_DIGITS}]{${API_KEY_LENGTH}}$`);

const BEARER = /^bearer +(\S+) *$/i;

/** The bearer token of an `Authorization` header; undefined if there is none, or another scheme. Never throws. */
export function bearerToken(authorization: string | null | undefined): string | undefined {
  return BEARER.exec(authorization ?? '')?.[1];
}

/** Whether a token has the format of an API key. */
export function looksLikeApiKey(token: string): boolean {
  return SHAPE.test(token);
}

/** The 401 of a request without a token. */
export function missingApiKey() {
  return failure('UNAUTHENTICATED', 'An API key is needed: `Authorization: Bearer sk_live_…`.');
}

/** The 401 of a request whose token is not the key of any account. */
export function invalidApiKey() {
  return failure('UNAUTHENTICATED', 'This API key is not valid.');
}
