import type { IncomingMessage, ServerResponse } from 'node:http';
import ipaddr from 'ipaddr.js';
import { type Origin, unmapped } from './redirect/answer/origin.ts';

/** Limits what each client address may do a minute. */
export interface AttemptLimit {
  /** How long the address has to wait until its next attempt, in whole seconds; undefined while it has any left. */
  waitOf(address: string): number | undefined;
  /** Counts an attempt of the address. */
  count(address: string): void;
}

const WINDOW_MS = 60_000;

/**
 * Addresses that are counted at a time; with more of them all counts begin anew. That lets somebody with so many
 * addresses through, whom no limit by address stops, and refuses nobody for what others do.
 */
const MOST_ADDRESSES = 20_000;

/** Lets each address make `mostPerMinute` attempts in each minute of this process. */
export function limitAttempts(mostPerMinute: number): AttemptLimit {
  const counts = new Map<string, number>();
  let end = 0;

  function forgetLastWindow(now: number): void {
    if (now < end) return;
    counts.clear();
    end = now + WINDOW_MS;
  }

  return {
    waitOf(address) {
      const now = performance.now();
      forgetLastWindow(now);
      if (counts.size === 0 || (counts.get(clientOf(address)) ?? 0) < mostPerMinute) return undefined;
      return Math.ceil((end - now) / 1_000);
    },
    count(address) {
      forgetLastWindow(performance.now());
      const client = clientOf(address);
      if (counts.size >= MOST_ADDRESSES) counts.clear();
      counts.set(client, (counts.get(client) ?? 0) + 1);
    },
  };
}

/**
 * Lets each client address have `most` of something at a time. Gives what has to be called when that has ended; undefined
 * when the address has `most` already.
 */
export function limitAtOnce(most: number): (address: string) => (() => void) | undefined {
  const counts = new Map<string, number>();

  return (address) => {
    const client = clientOf(address);
    const count = counts.get(client) ?? 0;
    if (count >= most) return undefined;
    counts.set(client, count + 1);
    return () => {
      const left = (counts.get(client) ?? 0) - 1;
      if (left > 0) counts.set(client, left);
      else counts.delete(client);
    };
  };
}

/** Counts a request until it has been answered; false when its client has too many in progress already. */
export type AdmitRequest = (request: IncomingMessage, response: ServerResponse) => boolean;

/**
 * Lets each client have `most` requests in progress. Clients with connections of their own seldom have more of these, but
 * all clients of a proxy share its connections. Requests of the proxy itself have no limit: where it reports nobody, they
 * may be anybody's.
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
    const end = begin(address);
    if (end) response.once('close', end);
    return end !== undefined;
  };
}

/** What limits count as one client: an IPv4 address, or the /64 of an IPv6 address, as one subscriber has all of it. */
export function clientOf(address: string): string {
  if (!address.includes(':')) return address;
  try {
    const parsed = ipaddr.parse(address);
    return parsed.kind() === 'ipv6' ? parsed.toByteArray().slice(0, 8).join('.') : address;
  } catch {
    return address;
  }
}
