import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { AttemptLimit } from '../address-limits.ts';
import type { CountRefusal } from '../metrics.ts';

/**
 * The number of known valid keys, kept as hashes, which are exempt from the limit: behind the shared address of an office
 * or a cloud service, one client's wrong key must not lock out the others.
 */
const MAX_VALID_KEYS = 10_000;

/** Limits how often a client address may fail to authenticate. */
export interface AuthenticationAttempts {
  /** The number of seconds until the sender may try again; undefined if the request may be processed. */
  waitOf(request: IncomingMessage): number | undefined;
  /** Records the status of the response to an authenticated endpoint. */
  answered(request: IncomingMessage, status: number): void;
}

/** Creates the limit. `addressOf` determines the client's address. */
export function limitAuthenticationFailures(
  limit: AttemptLimit,
  addressOf: (request: IncomingMessage) => string,
  countRefusal: CountRefusal,
): AuthenticationAttempts {
  const validKeys = new Set<string>();

  return {
    waitOf(request) {
      const seconds = limit.waitOf(addressOf(request));
      if (seconds === undefined || validKeys.has(credentialsOf(request))) return undefined;
      countRefusal('failed_authentications');
      return seconds;
    },
    answered(request, status) {
      if (status === 401) {
        limit.count(addressOf(request));
        validKeys.delete(credentialsOf(request));
      } else if (status < 500) {
        if (validKeys.size >= MAX_VALID_KEYS) validKeys.clear();
        validKeys.add(credentialsOf(request));
      }
    },
  };
}

function credentialsOf({ headers }: IncomingMessage): string {
  return hash('sha256', headers.authorization ?? '', 'base64');
}
