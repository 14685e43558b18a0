import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import { readOnlyPool } from '../postgres.ts';

/** The salts of the visitor hash, which this process keeps in memory only. */
export interface Salts {
  /** The salt of the UTC day of `now` (ms since 1970), 64 hexadecimal digits. Waits for nothing. */
  at(now: number): string;
  /** Resolves when the first attempt to read the salts has ended, whether it succeeded or not: within 2 s. */
  readonly attempted: Promise<void>;
  close(): Promise<void>;
}

const DAY_MS = 86_400_000;

/**
 * How often the salts are read, in ms, and while today's is missing. Cores make each salt a day ahead, so it is here
 * before midnight. After a crash of Postgres they make new ones, which all gateways use within a minute.
 */
const REFRESH_MS = 60_000;
const RETRY_MS = 1_000;

// At most three rows: cores destroy a salt two hours after its day.
const READ = {
  name: 'gateway_read_salts',
  text: `select day - date '1970-01-01' as day, encode(salt, 'hex') as salt from visitor_salts`,
};

/**
 * Reads the salts in the background. As long as Postgres has given none for a day, the process uses a random one of its
 * own: somebody whom another process has seen that day, or this one under another salt, then counts as another visitor.
 * So visitors are counted too high at worst, never too low.
 */
export function openSalts(databaseUrl: string, logger: Logger): Salts {
  const pool = readOnlyPool(databaseUrl, 1, logger);
  /** By day since 1970. */
  const shared = new Map<number, string>();
  let current = { day: Number.NaN, salt: '' };
  let isReported = false;
  let isClosed = false;
  let timer: NodeJS.Timeout | undefined;

  function at(now: number): string {
    const day = Math.floor(now / DAY_MS);
    if (day !== current.day) current = { day, salt: shared.get(day) ?? randomBytes(32).toString('hex') };
    return current.salt;
  }

  async function read(): Promise<void> {
    const { rows } = await pool.query<{ day: number; salt: string }>(READ);
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
    // Forgets yesterday's, also when nobody scans.
    at(now);
    const isMissing = !shared.has(today);
    if (isMissing && !isReported) logger.warn(failure, 'visitors are counted too high until today’s salt can be read');
    else if (!isMissing && isReported) logger.info('today’s salt was read');
    isReported = isMissing;
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
