import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { AttemptLimit } from '../address-limits.ts';
import type { CountRefusal } from '../metrics.ts';

/**
 * Keys that are known to be valid, as hashes. They are exempt: behind the address of an office or of a cloud service,
 * one client's wrong key must not lock out the others.
 */
const MOST_PROVEN = 10_000;

/** Limits how often a client address may fail to authenticate. */
export interface AuthenticationAttempts {
  /** How many seconds the sender of a request that has to be refused must wait; undefined when it may be answered. */
  waitOf(request: IncomingMessage): number | undefined;
  /** Told of the status of each answer whose request was to be authenticated. */
  answered(request: IncomingMessage, status: number): void;
}

/** `addressOf`: the client's address. */
export function limitFailures(
  limit: AttemptLimit,
  addressOf: (request: IncomingMessage) => string,
  countRefusal: CountRefusal,
): AuthenticationAttempts {
  const proven = new Set<string>();

  return {
    waitOf(request) {
      const seconds = limit.waitOf(addressOf(request));
      if (seconds === undefined || proven.has(credentialsOf(request))) return undefined;
      countRefusal('failed_authentications');
      return seconds;
    },
    answered(request, status) {
      if (status === 401) {
        limit.count(addressOf(request));
        proven.delete(credentialsOf(request));
      } else if (status < 500) {
        if (proven.size >= MOST_PROVEN) proven.clear();
        proven.add(credentialsOf(request));
      }
    },
  };
}

function credentialsOf({ headers }: IncomingMessage): string {
  return hash('sha256', headers.authorization ?? '', 'base64');
}
