/**
 * How fast scans are recorded, beside COPY of the same rows into the same table, and what reading analytics costs.
 *
 *   node test/bench/scans.ts [scans]      300,000 unless told
 *
 * Starts a Postgres of its own with the settings of a local run. Scans come in time order, from 2,000 codes by Zipf's
 * law, in polls of one partition as the log hands them out: once from one partition at a time, once from three. Those
 * of the last day have visitors to recognise; the others are late.
 */
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { from as copyFrom } from 'pg-copy-streams';
import { pino } from 'pino';
import { startPostgres } from '../../local/postgres.ts';
import { codeAnalytics } from '../../src/analytics/code-analytics.ts';
import { newUuid } from '../../src/contract/ids.ts';
import { type Database, openDatabase } from '../../src/db/database.ts';
import type { LogRecord } from '../../src/events/log/log.ts';
import { DAY_MS } from '../../src/scans/days.ts';
import { recordingOf } from '../../src/scans/recorder.ts';
import { IPHONE, keepingLog, type Scanned, scanRecord } from '../../src/scans/scans.fixture.ts';

const SCANS = Number(process.argv[2] ?? 300_000);
const POLL = 10_000;
/** Partitions that the recorder has in hand at a time, and connections that it writes on; COPY has one. */
const AT_ONCE = 3;
const PARTITIONS = 12;
const DAYS = 10;
const READS = 300;
const AGENTS = [
  IPHONE,
  'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Mobile Safari/537.36',
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36',
  'Mozilla/5.0 (Linux; Android 14; SM-S921B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/26.0 Chrome/122.0.0.0 Mobile Safari/537.36',
];
const REFERRERS = ['', '', '', '', '', '', '', 'https://www.instagram.com/', 'https://t.co/x', 'https://example.org/'];

const folder = await mkdtemp(join(tmpdir(), 'signpost-bench-'));
const postgres = await startPostgres({ folder });
const database = await openDatabase(postgres.url, 8);
try {
  await database.migrate();
  const codes = zipf(Array.from({ length: 2_000 }, () => ({ codeId: newUuid(), accountId: newUuid() })));
  const start = Date.now() - DAYS * DAY_MS;
  const records = Array.from({ length: SCANS }, (_, index) => scan(codes(), start + (index / SCANS) * DAYS * DAY_MS));

  const alone = await recordAll(database, records, 1);
  say('recorded with every counter, one partition at a time', alone);
  const again = await recordAll(database, records.slice(0, POLL * 5), 1);
  say('the same again, nothing new', again, POLL * 5);
  await database.pool.query('truncate scans, scan_visitors, scan_days, scan_hours, scan_values, scan_totals');
  const together = await recordAll(database, records, AT_ONCE);
  say(`recorded with every counter, ${AT_ONCE} partitions at a time`, together);
  const copied = await timed(await copyOf(database));
  say('COPY of the same rows on one connection', copied);
  console.log(
    `of COPY: ${(copied / alone).toFixed(2)} one at a time, ${(copied / together).toFixed(2)} ${AT_ONCE} at a time`,
  );

  const few = { codeId: newUuid(), accountId: newUuid() };
  await recordAll(
    database,
    Array.from({ length: 1_000 }, (_, index) => scan(few, start + (index / 1_000) * DAYS * DAY_MS)),
    1,
  );
  await database.pool.query('analyze');
  await reads(database, few, '1,000 scans');
  const { rows } = await database.pool.query(
    'select code_id as "codeId", account_id as "accountId", scans from scan_totals order by scans::integer desc limit 1',
  );
  await reads(database, rows[0], `${rows[0].scans} scans among ${SCANS}`);
} finally {
  await database.close();
  await postgres.stop();
  await rm(folder, { recursive: true });
}

/** Draws from `things`, the first one most often. */
function zipf<Thing>(things: readonly Thing[]): () => Thing {
  let sum = 0;
  const ends = things.map((_, index) => {
    sum += 1 / (index + 1);
    return sum;
  });
  return () => {
    const drawn = Math.random() * sum;
    return things[ends.findIndex((end) => end >= drawn)] as Thing;
  };
}

function scan(scanned: Scanned, at: number): LogRecord {
  const [a = 0, b = 0, c = 0, d = 0] = randomBytes(4);
  return scanRecord(scanned, {
    at: Math.floor(at),
    userAgent: AGENTS[a % AGENTS.length] as string,
    referrer: REFERRERS[b % REFERRERS.length] as string,
    // Some 50,000 visitors, of a few dozen countries.
    address: `${20 + (c % 60)}.${c % 13}.${d}.1`,
  });
}

/** Gives how many ms it took. */
async function recordAll(into: Database, records: readonly LogRecord[], atOnce: number): Promise<number> {
  const handle = await recordingOf({ log: keepingLog(), database: into, logger: pino({ level: 'warn' }) });
  const polls = [...pollsOf(records)].values();
  const worker = async () => {
    for (const poll of polls) await handle(poll);
  };
  return await timed(() => Promise.all(Array.from({ length: atOnce }, worker)));
}

/** Each poll is of one partition, and each code in one partition, as the log has it. */
function* pollsOf(records: readonly LogRecord[]): Generator<LogRecord[]> {
  const waiting = Array.from({ length: PARTITIONS }, (): LogRecord[] => []);
  for (const record of records) {
    const partition = createHash('md5').update(record.key).digest().readUInt32BE() % PARTITIONS;
    const poll = waiting[partition] ?? [];
    poll.push(record);
    if (poll.length >= POLL) yield poll.splice(0);
  }
  for (const poll of waiting) if (poll.length > 0) yield poll;
}

/** The recorded rows as text, the table emptied; gives what copies them in again. */
async function copyOf({ pool }: Database): Promise<() => Promise<void>> {
  const { rows } = await pool.query('select * from scans order by scanned_at');
  const lines = rows.map((row) => Object.values(row).join('\t').concat('\n'));
  await pool.query('truncate scans');
  return async () => {
    const client = await pool.connect();
    try {
      await pipeline(Readable.from(chunks(lines)), client.query(copyFrom('copy scans from stdin')));
    } finally {
      client.release();
    }
  };
}

function* chunks(lines: readonly string[]): Generator<string> {
  for (let from = 0; from < lines.length; from += POLL) yield lines.slice(from, from + POLL).join('');
}

async function reads(from: Database, { codeId, accountId }: Scanned, called: string): Promise<void> {
  const took: number[] = [];
  for (let read = 0; read < READS; read++) {
    took.push(await timed(() => codeAnalytics(from, { codeId, accountId, period: 30, now: Date.now() })));
  }
  took.sort((a, b) => a - b);
  const ms = (share: number) => (took[Math.floor(took.length * share)] ?? 0).toFixed(2);
  console.log(`analytics of ${called}: p50 ${ms(0.5)} ms, p99 ${ms(0.99)} ms`);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

function say(what: string, ms: number, scans = SCANS): void {
  console.log(`${what}: ${Math.round((scans / ms) * 1_000)} scans/s`);
}
