import type { Logger } from 'pino';
import { ROUTED_COLUMNS, type RoutedCode, routeOf } from '../../../common/contract/route.ts';
import { SHORT_CODE } from '../../../common/contract/short-code.ts';
import { BoundedMap } from '../../../common/runtime/bounded-map.ts';
import { throttledReport } from '../../../common/runtime/throttled-report.ts';
import type { Route } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import type { AttemptLimit } from '../../http/address-limits.ts';
import type { CountRefusal } from '../../http/refusal-metrics.ts';
import { readOnlyPool } from '../read-only-pool.ts';

/** Looks up codes in Postgres that the route table does not contain (yet). */
export interface UnknownCodes {
  /**
   * The route; undefined if no code has this short code. Rejects with `TooManyUnknown` if this client address has
   * requested too many codes that do not exist, and with another error while Postgres is unavailable or the queue is
   * full.
   */
  find(shortCode: string, address: string): Promise<Route | undefined>;
  close(): Promise<void>;
}

/** The address has exceeded its limit; it may try again after `seconds`. */
export class TooManyUnknown extends Error {
  readonly seconds: number;

  constructor(seconds: number) {
    super('too many unknown codes from one address');
    this.seconds = seconds;
  }
}

/** How long a negative result is cached, in ms, and the size of that cache. */
const MISSING_MS = 2_000;
const MAX_MISSING = 10_000;
const CONNECTIONS = 2;

/**
 * Codes that one statement looks up, and codes that may wait for the next one. Look-ups that arrive during a statement
 * share the next one, so that made-up codes hardly delay a new code: among 100,000 codes, looking up 500 took 1.6 ms
 * and one took 0.5 ms. The answer to 50 has 3 MB if each has a policy of 60,000 bytes. One to 500 needed 240 Mbit/s to
 * arrive within the timeout, and decoding it took 100 ms.
 */
const CODES_PER_STATEMENT = 50;
const MAX_WAITING = 1_000;

/** The minimum interval between log lines about failed look-ups, in ms. */
const LOG_MS = 10_000;

/** Index: codes_short_code_key. */
const FIND_CODES = {
  name: 'gateway_find_codes',
  text: `select ${ROUTED_COLUMNS.join(', ')} from codes where short_code = any($1)`,
};

interface LookUp extends PromiseWithResolvers<Route | undefined> {
  /** The client address of the first request. */
  readonly address: string;
}

/** Uses its own read-only connections. `limit` counts requests for codes that do not exist, by client address. */
export function lookUpUnknownCodes(
  databaseUrl: string,
  limit: AttemptLimit,
  countRefusal: CountRefusal,
  logger: Logger,
): UnknownCodes {
  const pool = readOnlyPool(databaseUrl, CONNECTIONS, logger);
  const waiting = new Map<string, LookUp>();
  const inFlight = new Map<string, LookUp>();
  const missing = new BoundedMap<string, number>(MAX_MISSING, MAX_MISSING);
  let statements = 0;
  // Throttled: while Postgres is unavailable, every scan of an unknown code fails.
  const logFailure = throttledReport(LOG_MS, (failed, { message }: Error) => {
    logger.warn({ failed, reason: message }, 'unknown codes could not be looked up');
  });

  function lookUpNext(): void {
    if (statements === CONNECTIONS || waiting.size === 0) return;
    const all = [...waiting];
    const next = all.slice(0, CODES_PER_STATEMENT);
    for (const [shortCode, lookUp] of next) {
      waiting.delete(shortCode);
      inFlight.set(shortCode, lookUp);
    }
    statements++;
    runStatement(next)
      .catch((error: Error) => {
        // Those that have waited for as long must not wait for a timeout of their own.
        const waited = all.filter(([shortCode, lookUp]) => waiting.get(shortCode) === lookUp);
        for (const [shortCode] of waited) waiting.delete(shortCode);
        for (const [, lookUp] of [...next, ...waited]) lookUp.reject(error);
        logFailure(next.length + waited.length, error);
      })
      .finally(() => {
        for (const [shortCode] of next) inFlight.delete(shortCode);
        statements--;
        lookUpNext();
      });
  }

  async function runStatement(lookUps: readonly (readonly [string, LookUp])[]): Promise<void> {
    const { rows } = await pool.query<RoutedCode>({ ...FIND_CODES, values: [lookUps.map(([shortCode]) => shortCode)] });
    const found = new Map(rows.map((row) => [row.short_code, row]));
    for (const [shortCode, { resolve, reject, address }] of lookUps) {
      const row = found.get(shortCode);
      if (!row) recordMissing(shortCode, address);
      try {
        resolve(row && routeOf(row));
      } catch (error) {
        // A row that this version cannot read must not fail the others.
        reject(error);
      }
    }
  }

  function recordMissing(shortCode: string, address: string): void {
    limit.count(address);
    missing.set(shortCode, performance.now() + MISSING_MS, 1);
  }

  return {
    async find(shortCode, address) {
      if (!SHORT_CODE.test(shortCode)) return undefined;
      const until = missing.get(shortCode);
      if (until !== undefined && until > performance.now()) return undefined;
      const existing = inFlight.get(shortCode) ?? waiting.get(shortCode);
      if (existing) return existing.promise;
      const seconds = limit.waitOf(address);
      if (seconds !== undefined) {
        countRefusal('unknown_codes');
        throw new TooManyUnknown(seconds);
      }
      if (waiting.size >= MAX_WAITING) {
        const error = new Error('too many look-ups are waiting');
        logFailure(1, error);
        throw error;
      }
      const lookUp = { ...Promise.withResolvers<Route | undefined>(), address };
      waiting.set(shortCode, lookUp);
      lookUpNext();
      return lookUp.promise;
    },
    close: () => pool.end(),
  };
}
