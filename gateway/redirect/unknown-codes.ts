import type { Logger } from 'pino';
import type { Route } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { type RoutedCode, routeOf } from '../../src/contract/route.ts';
import { readOnlyPool } from './postgres.ts';

/** Looks codes up that the route table does not know (yet). */
export interface UnknownCodes {
  /** The route; undefined when no code has this short code. Rejects while Postgres is away. */
  find(shortCode: string): Promise<Route | undefined>;
  close(): Promise<void>;
}

/** How long "no such code" is believed, in ms, and of how many codes. */
const REMEMBERED_MS = 2_000;
const REMEMBERED = 10_000;
const CONNECTIONS = 2;

/** Index: codes_short_code_key. */
const FIND = {
  name: 'gateway_find_code',
  text: `select id, account_id, type, short_code, target_url, paused, hostname, landing_page, version, deleted_at
         from codes where short_code = $1`,
};

/** Over read-only connections of its own; at most one look-up a code is under way. */
export function lookUpUnknownCodes(databaseUrl: string, logger: Logger): UnknownCodes {
  const pool = readOnlyPool(databaseUrl, CONNECTIONS, logger);
  const underWay = new Map<string, Promise<Route | undefined>>();
  const missing = new Map<string, number>();

  async function ask(shortCode: string): Promise<Route | undefined> {
    const { rows } = await pool.query<RoutedCode>({ ...FIND, values: [shortCode] });
    const [row] = rows;
    if (row) return routeOf(row);
    if (missing.size >= REMEMBERED) missing.clear();
    missing.set(shortCode, performance.now() + REMEMBERED_MS);
    return undefined;
  }

  return {
    find(shortCode) {
      const until = missing.get(shortCode);
      if (until !== undefined) {
        if (until > performance.now()) return Promise.resolve(undefined);
        missing.delete(shortCode);
      }
      const asked = underWay.get(shortCode);
      if (asked) return asked;
      const asking = ask(shortCode).finally(() => underWay.delete(shortCode));
      underWay.set(shortCode, asking);
      return asking;
    },
    close: () => pool.end(),
  };
}
