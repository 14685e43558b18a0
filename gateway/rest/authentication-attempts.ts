import type { IncomingMessage } from 'node:http';
import type { FastifyReply } from 'fastify';
import { failure, REASONS, readFailure } from '../../common/contract/errors.ts';
import { KnownKeys } from '../../common/contract/known-keys.ts';
import { clientOf } from '../../common/http/client-of.ts';
import { fairQueue } from '../../common/queues/fair-queue.ts';
import type { AttemptLimit } from '../http/address-limits.ts';
import type { CountRefusal } from '../http/refusal-metrics.ts';
import { abortOnDisconnect } from './caller-disconnect.ts';

/**
 * Keys that are not known to be valid: at most this many are checked at a time in each worker. A check takes 1 to 2 ms
 * of processor time in all processes together, so even from many addresses made-up keys use only a part of a machine.
 */
const UNKNOWN_KEYS = { concurrency: 2, concurrencyPerCaller: 1, maxWaiting: 2_000, items: 'API keys' };
/** How long a check may wait, in ms. */
const WAIT_MS = 10_000;
/** Statuses with which the core rejects only calls whose key is valid. */
const PROVE_KEY: readonly number[] = [403, 429];

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
   * Runs `check`, a call that only authenticates, once it is the client's turn. Resolves with undefined without a check
   * if the key was valid lately. Rejects with TOO_MANY_FAILURES if the address has failed too often by then, with
   * UNAVAILABLE if the wait is too long, and if the client disconnects. A check that has begun goes on nevertheless: a
   * client must not escape the limits by disconnecting.
   */
  authenticate<Result>(reply: FastifyReply, check: () => Promise<Result>): Promise<Result | undefined>;
  /** Records the status of the response, also if nobody is left to receive it. */
  answered(status: number): void;
}

/**
 * Limits how often a client address may fail to authenticate, and how many unknown keys are checked at a time.
 *
 * `addressOf` determines the client's address. A valid key is exempt, because behind the shared address of an office or
 * a cloud service one client's wrong key must not lock out the others.
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
        async authenticate(reply, check) {
          if (knownKeys.has(credentials)) return undefined;
          const waiting = abortOnDisconnect(reply);
          const timer = setTimeout(() => waiting.abort(tooManyUnknownKeys()), WAIT_MS);
          const start = async () => {
            clearTimeout(timer);
            // Meanwhile another request with this key may have succeeded.
            if (knownKeys.has(credentials)) return undefined;
            expectAllowed();
            try {
              const result = await check();
              knownKeys.add(credentials);
              waiting.signal.throwIfAborted();
              return result;
            } catch (error) {
              // Plan and rate are checked for valid keys only.
              if (PROVE_KEY.includes(REASONS[readFailure(error).reason].http)) knownKeys.add(credentials);
              throw error;
            }
          };
          return inTurn(clientOf(addressOf(request)), waiting.signal, start).finally(() => clearTimeout(timer));
        },
        answered(status) {
          if (status !== 401) return;
          limit.count(addressOf(request));
          knownKeys.delete(credentials);
        },
      };
    },
  };
}

function tooManyUnknownKeys(): Error {
  return failure('UNAVAILABLE', 'Too many API keys are being checked at the moment; try again.');
}
