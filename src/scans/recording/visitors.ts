import { randomBytes } from 'node:crypto';
import type { Pool } from 'pg';
import { first, run, statement } from '../../../common/postgres/sql.ts';
import { DAY_MS, dayOf } from '../days.ts';

/** How long after its day a salt is kept for scans on their way, in ms. Later ones are strangers'. */
const GRACE_MS = 2 * 3_600_000;

/** How many visitors one statement forgets, so that none holds locks for long. */
const FORGET_AT_ONCE = 20_000;

const PROPOSE_SALT = statement(
  'propose_salt',
  'insert into visitor_salts (day, salt) values ($1, $2) on conflict do nothing',
);
// Primary key.
const READ_SALT = statement<{ salt: string }>(
  'read_salt',
  `select encode(salt, 'hex') as salt from visitor_salts where day = $1`,
);
const DESTROY_SALTS = statement('destroy_salts', 'delete from visitor_salts where day < $1');
// Primary key: its first column is the day.
const FORGET_VISITORS = statement<{ forgotten: number }>(
  'forget_visitors',
  `with gone as (
     delete from scan_visitors
     where ctid = any(array(select ctid from scan_visitors where day < $1 limit ${FORGET_AT_ONCE}))
     returning 1
   )
   select count(*)::integer as forgotten from gone`,
);

/** The first day whose salt is not destroyed yet: visitors of earlier days cannot be recognised. */
export function firstSaltedDay(now: number): string {
  return dayOf(now - GRACE_MS);
}

/**
 * Makes the salts of today and tomorrow where nobody has: gateways read them and go on with them at midnight, also when
 * Postgres is unavailable then.
 */
export async function makeSalts(pool: Pool, now: number): Promise<void> {
  for (const day of [dayOf(now), dayOf(now + DAY_MS)]) await run(pool, PROPOSE_SALT, [day, randomBytes(32)]);
}

/** The salt of a day, 64 hexadecimal digits; undefined where there is none. */
export async function readSalt(pool: Pool, day: string): Promise<string | undefined> {
  return (await first(pool, READ_SALT, [day]))?.salt;
}

/** Destroys the salts of days that are over, and forgets who visited on them: nobody can be recognised any more. */
export async function destroySalts(pool: Pool, now: number): Promise<void> {
  const oldest = firstSaltedDay(now);
  await run(pool, DESTROY_SALTS, [oldest]);
  // A deleted row stays in the table's file, and autovacuum does not care for a row a day: this writes a new file. Who
  // reads the table meanwhile is not waited for: the next hour will do.
  await pool.query('vacuum (full, skip_locked) visitor_salts');
  let forgotten: number | undefined;
  do forgotten = (await first(pool, FORGET_VISITORS, [oldest]))?.forgotten;
  while (forgotten === FORGET_AT_ONCE);
}

/**
 * The visitor of a scan that came after its day's salt was destroyed: nobody can tell whose it is, so it counts as one
 * visitor of its own: the random end of the scan's id, a UUID.
 */
export function strangerOf(scanId: string): bigint {
  return BigInt.asIntN(64, BigInt(`0x${scanId.slice(-17, -13)}${scanId.slice(-12)}`));
}
