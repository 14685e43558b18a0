import { hash, randomBytes } from 'node:crypto';
import type { Pool } from 'pg';
import { first, run, statement } from '../db/sql.ts';
import { dayOf } from './days.ts';

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

/** The day's salts of the visitor hash in hexadecimal, by day; shared by all recorders through Postgres. */
export type Salts = Map<string, string>;

/** The first day that still has, or may be given, a salt. */
export function firstSaltedDay(now: number): string {
  return dayOf(now - GRACE_MS);
}

/**
 * Sees that `salts` holds the salts of these days, as far as they are not over, and none of days that are. The first
 * recorder to need a day makes its salt.
 */
export async function loadSalts(pool: Pool, salts: Salts, days: Iterable<string>, now: number): Promise<void> {
  const oldest = firstSaltedDay(now);
  for (const day of salts.keys()) if (day < oldest) salts.delete(day);
  for (const day of days) {
    if (day < oldest || salts.has(day)) continue;
    await run(pool, PROPOSE_SALT, [day, randomBytes(32)]);
    const made = await first(pool, READ_SALT, [day]);
    if (made) salts.set(day, made.salt);
  }
}

/** Destroys the salts of days that are over, and forgets who visited on them: nobody can be recognised any more. */
export async function destroySalts(pool: Pool, now: number): Promise<void> {
  const oldest = firstSaltedDay(now);
  await run(pool, DESTROY_SALTS, [oldest]);
  let forgotten: number | undefined;
  do forgotten = (await first(pool, FORGET_VISITORS, [oldest]))?.forgotten;
  while (forgotten === FORGET_AT_ONCE);
}

/**
 * A visitor of a day: 64 bits of SHA-256 over the salt, 32 random bytes, the address and the user agent. In one call, and
 * read as text: that takes a fifth of what an HMAC object does, for every scan.
 */
export function visitorOf(salt: string, address: string, userAgent: string): bigint {
  const digest = hash('sha256', `${salt}\n${address}\n${userAgent}`, 'hex');
  return BigInt.asIntN(64, BigInt(`0x${digest.slice(0, 16)}`));
}

/**
 * The visitor of a scan that came after its day's salt was destroyed: nobody can tell whose it is, so it counts as one
 * visitor of its own: the random end of the scan's id, a UUID.
 */
export function strangerOf(scanId: string): bigint {
  return BigInt.asIntN(64, BigInt(`0x${scanId.slice(-17, -13)}${scanId.slice(-12)}`));
}
