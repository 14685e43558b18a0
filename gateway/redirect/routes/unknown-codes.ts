import type { Logger } from 'pino';
import { ROUTED_COLUMNS, type RoutedCode, routeOf } from '../../../common/contract/route.ts';
import { SHORT_CODE } from '../../../common/contract/short-code.ts';
import { throttledReport } from '../../../common/runtime/throttled-report.ts';
import type { Route } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import type { AttemptLimit } from '../../address-limits.ts';
import type { CountRefusal } from '../../metrics.ts';
import { readOnlyPool } from '../postgres.ts';

/** Looks up codes that the route table does not know (yet). */
export interface UnknownCodes {
  /**
   * The route; undefined when no code has this short code. Rejects with `TooManyUnknown` when this client address has
   * asked for too many codes that do not exist, and with another error while Postgres is unavailable or the queue is full.
   */
  find(shortCode: string, address: string): Promise<Route | undefined>;
  close(): Promise<void>;
}

/** The address has to wait this many seconds before a code is looked up for it. */
export class TooManyUnknown extends Error {
  readonly seconds: number;

  constructor(seconds: number) {
    super('too many unknown codes from one address');
    this.seconds = seconds;
  }
}

/** How long "no such code" is believed, in ms, and of how many codes. */
const REMEMBERED_MS = 2_000;
const REMEMBERED = 10_000;
const CONNECTIONS = 2;

/**
 * Codes that one statement looks up, and codes that may wait for the next one. Look-ups that arrive during a statement
 * share the next one, so that made-up codes do not hold up a new code: among 100,000 codes, 500 were looked up in 1.6 ms
 * and one in 0.5.
 */
const TOGETHER = 500;
const MOST_WAITING = 1_000;

/** The shortest time between two log lines about look-ups that failed, in ms. */
const LOG_MS = 10_000;

/** Index: codes_short_code_key. */
const FIND = {
  name: 'gateway_find_codes',
  text: `select ${ROUTED_COLUMNS.join(', ')} from codes where short_code = any($1)`,
};

interface LookUp extends PromiseWithResolvers<Route | undefined> {
  /** Who asked first. */
  readonly address: string;
}

/** Over read-only connections of its own. `limit` counts codes that do not exist, by the address that asked for them. */
export function lookUpUnknownCodes(
  databaseUrl: string,
  limit: AttemptLimit,
  countRefusal: CountRefusal,
  logger: Logger,
): UnknownCodes {
  const pool = readOnlyPool(databaseUrl, CONNECTIONS, logger);
  const waiting = new Map<string, LookUp>();
  const underWay = new Map<string, LookUp>();
  const missing = new Map<string, number>();
  let statements = 0;
  // One line for many: while Postgres is unavailable, every scan of an unknown code fails.
  const logFailure = throttledReport(LOG_MS, (failed, { message }: Error) => {
    logger.warn({ failed, reason: message }, 'unknown codes could not be looked up');
  });

  function lookUpNext(): void {
    if (statements === CONNECTIONS || waiting.size === 0) return;
    const next = [...waiting].slice(0, TOGETHER);
    for (const [shortCode, lookUp] of next) {
      waiting.delete(shortCode);
      underWay.set(shortCode, lookUp);
    }
    statements++;
    ask(next)
      .catch((error: Error) => {
        for (const [, lookUp] of next) lookUp.reject(error);
        logFailure(next.length, error);
      })
      .finally(() => {
        for (const [shortCode] of next) underWay.delete(shortCode);
        statements--;
        lookUpNext();
      });
  }

  async function ask(lookUps: readonly (readonly [string, LookUp])[]): Promise<void> {
    const { rows } = await pool.query<RoutedCode>({ ...FIND, values: [lookUps.map(([shortCode]) => shortCode)] });
    const found = new Map(rows.map((row) => [row.short_code, row]));
    for (const [shortCode, { resolve, reject, address }] of lookUps) {
      const row = found.get(shortCode);
      if (!row) remember(shortCode, address);
      try {
        resolve(row && routeOf(row));
      } catch (error) {
        // A row that this version cannot read must not fail the others.
        reject(error);
      }
    }
  }

  function remember(shortCode: string, address: string): void {
    limit.count(address);
    if (missing.size >= REMEMBERED) missing.clear();
    missing.set(shortCode, performance.now() + REMEMBERED_MS);
  }

  return {
    async find(shortCode, address) {
      if (!SHORT_CODE.test(shortCode)) return undefined;
      const until = missing.get(shortCode);
      if (until !== undefined) {
        if (until > performance.now()) return undefined;
        missing.delete(shortCode);
      }
      const asked = underWay.get(shortCode) ?? waiting.get(shortCode);
      if (asked) return asked.promise;
      const seconds = limit.waitOf(address);
      if (seconds !== undefined) {
        countRefusal('unknown_codes');
        throw new TooManyUnknown(seconds);
      }
      if (waiting.size >= MOST_WAITING) {
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
