import type { IncomingMessage, ServerResponse } from 'node:http';
import { clientOf, unmapped } from '../../common/http/client-of.ts';
import { limitAtOnce } from '../../common/queues/limit-at-once.ts';
import type { Origin } from './origin.ts';

/** Limits the attempts of each client address per minute. */
export interface AttemptLimit {
  /** How long the address must wait until its next attempt, in whole seconds; undefined while it has attempts left. */
  waitOf(address: string): number | undefined;
  /** Counts an attempt of the address. */
  count(address: string): void;
}

const WINDOW_MS = 60_000;

/**
 * The maximum number of addresses counted at a time; beyond it, all counts are reset. This lets through an attacker
 * with so many addresses, whom no limit by address could stop, and never rejects a client for what others do.
 */
const MAX_ADDRESSES = 20_000;

/** Allows each address `mostPerMinute` attempts in each minute of this process. */
export function limitAttempts(mostPerMinute: number): AttemptLimit {
  const counts = new Map<string, number>();
  let end = 0;

  function resetExpired(now: number): void {
    if (now < end) return;
    counts.clear();
    end = now + WINDOW_MS;
  }

  return {
    waitOf(address) {
      const now = performance.now();
      resetExpired(now);
      if (counts.size === 0 || (counts.get(clientOf(address)) ?? 0) < mostPerMinute) return undefined;
      return Math.ceil((end - now) / 1_000);
    },
    count(address) {
      resetExpired(performance.now());
      const client = clientOf(address);
      if (counts.size >= MAX_ADDRESSES) counts.clear();
      counts.set(client, (counts.get(client) ?? 0) + 1);
    },
  };
}

/** Counts a request until it has been answered; false if its client already has too many in progress. */
export type AdmitRequest = (request: IncomingMessage, response: ServerResponse) => boolean;

/**
 * Allows each client `most` requests in progress. Clients that connect directly are limited by their connections, but
 * all clients of a proxy share its connections. Requests for which the proxy reports no client have no limit, since
 * they may come from any client.
 */
export function limitRequests(
  most: number,
  originOf: (peer: string, headers: IncomingMessage['headers']) => Origin,
): AdmitRequest {
  const begin = limitAtOnce(most);

  return ({ socket, headers }, response) => {
    const { remoteAddress = '' } = socket;
    const { proxied, address } = originOf(remoteAddress, headers);
    if (proxied && address === unmapped(remoteAddress)) return true;
    const end = begin(clientOf(address));
    if (end) response.once('close', end);
    return end !== undefined;
  };
}
