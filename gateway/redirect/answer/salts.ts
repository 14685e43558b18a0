import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import { DAY_MS } from '../../../common/runtime/durations.ts';
import { readOnlyPool } from '../read-only-pool.ts';

/** The salts of the visitor hash. This process keeps them in memory only. */
export interface Salts {
  /** The salt of the UTC day of `now` (ms since 1970), 64 hexadecimal digits. Never blocks. */
  at(now: number): string;
  /** Resolves when the first attempt to read the salts has succeeded or failed: within 2 s. */
  readonly attempted: Promise<void>;
  close(): Promise<void>;
}

/**
 * How often the salts are read, in ms: normally, and while today's is missing. Cores create each salt a day ahead, so
 * gateways have it before midnight. After a crash of Postgres cores create new ones, which all gateways use within a
 * minute.
 */
const REFRESH_MS = 60_000;
const RETRY_MS = 1_000;

// At most three rows while a recorder runs: it deletes a salt two to three hours after the end of its day.
const READ_SALTS = {
  name: 'gateway_read_salts',
  text: `select day - date '1970-01-01' as day, encode(salt, 'hex') as salt from visitor_salts`,
};

/**
 * Reads the salts in the background. While it has none from Postgres for the current day, the process uses a random
 * salt of its own: a visitor whom another process has seen that day, or this one under another salt, is counted again.
 * So visitor counts can be too high, but never too low.
 */
export function openSalts(databaseUrl: string, logger: Logger): Salts {
  const pool = readOnlyPool(databaseUrl, 1, logger);
  /** By day since 1970. */
  const shared = new Map<number, string>();
  let current = { day: Number.NaN, salt: '' };
  let isMissingLogged = false;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;

  function at(now: number): string {
    const day = Math.floor(now / DAY_MS);
    if (day !== current.day) current = { day, salt: shared.get(day) ?? randomBytes(32).toString('hex') };
    return current.salt;
  }

  async function read(): Promise<void> {
    const { rows } = await pool.query<{ day: number; salt: string }>(READ_SALTS);
    for (const { day, salt } of rows) shared.set(day, salt);
    current.salt = shared.get(current.day) ?? current.salt;
  }

  async function refresh(): Promise<void> {
    const failure = await read().then(
      () => undefined,
      ({ message }: Error) => ({ reason: message }),
    );
    const now = Date.now();
    const today = Math.floor(now / DAY_MS);
    for (const day of shared.keys()) if (day < today) shared.delete(day);
    // Drops yesterday's salt even if there are no scans.
    at(now);
    const isMissing = !shared.has(today);
    if (isMissing && !isMissingLogged)
      logger.warn(failure, 'visitors are counted too high until today’s salt can be read');
    else if (!isMissing && isMissingLogged) logger.info('today’s salt was read');
    isMissingLogged = isMissing;
    if (!isClosed) timer = setTimeout(refresh, isMissing ? RETRY_MS : REFRESH_MS);
  }

  return {
    at,
    attempted: refresh(),
    close() {
      isClosed = true;
      clearTimeout(timer);
      return pool.end();
    },
  };
}
