import type { IncomingMessage } from 'node:http';
import type { FastifyReply } from 'fastify';
import { failure } from '../../common/contract/errors.ts';
import { KnownKeys } from '../../common/contract/known-keys.ts';
import { fairQueue } from '../../common/runtime/fair-queue.ts';
import { type AttemptLimit, clientOf } from '../address-limits.ts';
import type { CountRefusal } from '../metrics.ts';
import { abortOnDisconnect } from './caller-disconnect.ts';

/**
 * Calls with keys that are not known to be valid: at most this many at a time, for each worker. A call with a made-up key
 * takes 1 to 2 ms of processor time in all processes together, so these are a few thousand a second.
 */
const UNKNOWN_KEYS = { concurrency: 4, concurrencyPerCaller: 2, maxWaiting: 2_000, items: 'API keys' };
/** How long such a call may wait, in ms. */
const WAIT_MS = 10_000;

/** Limits what requests with wrong keys cost others. */
export interface AuthenticationAttempts {
  /** Called for each request to an endpoint. */
  begin(request: IncomingMessage): Attempt;
}

/** The authentication of one request. Requests with a key that was valid lately have no limits. */
export interface Attempt {
  /** Throws TOO_MANY_FAILURES if the client's address has failed to authenticate too often. */
  expectAllowed(): void;
  /**
   * Calls the core once it is the client's turn. Rejects with TOO_MANY_FAILURES if its address has failed too often by
   * then, with UNAVAILABLE if the wait is too long, and if the client disconnects before the call.
   */
  call<Result>(reply: FastifyReply, call: () => Promise<Result>): Promise<Result>;
  /** Records the status of the response. */
  answered(status: number): void;
}

/**
 * Limits how often a client address may fail to authenticate, and how many calls with unknown keys run at a time.
 *
 * `addressOf` determines the client's address. A valid key is exempt, because behind the shared address of an office or a
 * cloud service one client's wrong key must not lock out the others.
 */
export function limitAuthenticationFailures(
  limit: AttemptLimit,
  addressOf: (request: IncomingMessage) => string,
  countRefusal: CountRefusal,
): AuthenticationAttempts {
  const knownKeys = new KnownKeys();
  const inTurn = fairQueue(UNKNOWN_KEYS);

  return {
    begin(request) {
      const credentials = request.headers.authorization ?? '';
      const expectAllowed = () => {
        const seconds = limit.waitOf(addressOf(request));
        if (seconds === undefined || knownKeys.has(credentials)) return;
        countRefusal('failed_authentications');
        const sentence = `Requests from this address failed to authenticate too often; try again in ${seconds} s.`;
        throw failure('TOO_MANY_FAILURES', sentence, { retry_after: String(seconds) });
      };
      return {
        expectAllowed,
        async call(reply, call) {
          if (knownKeys.has(credentials)) return call();
          const waiting = abortOnDisconnect(reply);
          const timer = setTimeout(() => waiting.abort(tooManyUnknownKeys()), WAIT_MS);
          const start = () => {
            clearTimeout(timer);
            expectAllowed();
            return call();
          };
          const result = await inTurn(clientOf(addressOf(request)), waiting.signal, start).finally(() =>
            clearTimeout(timer),
          );
          knownKeys.add(credentials);
          return result;
        },
        answered(status) {
          if (status === 401) {
            limit.count(addressOf(request));
            knownKeys.delete(credentials);
          } else if (status < 500 && status !== 429) {
            knownKeys.add(credentials);
          }
        },
      };
    },
  };
}

function tooManyUnknownKeys(): Error {
  return failure('UNAVAILABLE', 'Too many API keys are being checked at the moment; try again.');
}
