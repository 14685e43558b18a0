/**
 * How fast scans that wait in the log are recorded with every counter, compared with COPY of the same rows into the
 * same table.
 *
 *   node test/bench/scans.ts [scans]      default: 300,000
 *
 * Starts a Postgres with the settings of a local run, and an Apache Kafka if Java is installed; otherwise the log is in
 * that Postgres. Scans are in time order, of 2,000 codes by Zipf's law; those of the last day have visitors to
 * recognise, the others are late. The time is measured from the recorder's start, including joining its group, until
 * all are recorded.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { from as copyFrom } from 'pg-copy-streams';
import { pino } from 'pino';
import { openLog } from '../../common/log/open.ts';
import { SCANS, TOPICS } from '../../common/log/topics.ts';
import { DAY_MS } from '../../common/runtime/durations.ts';
import { startPostgres } from '../../local/postgres.ts';
import { openDatabase } from '../../src/db/database.ts';
import { entities } from '../../src/entities.ts';
import { waitingRecords } from '../../src/scans/ledger/ledger.ts';
import { startRecorder } from '../../src/scans/recording/recorder.ts';
import { IPHONE, newScannedCode, scanRecord, visitor } from '../../src/scans/scans.fixture.ts';
import { kafkaForTests } from '../harness/kafka.ts';
import { median } from './median.ts';

const COUNT = Number(process.argv[2] ?? 300_000);
const ROUNDS = 3;
const CODES = 2_000;
const DAYS = 10;

/** How many records are published, and rows copied, at a time. */
const CHUNK = 10_000;
const AGENTS = [
  IPHONE,
  'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Mobile Safari/537.36',
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36',
  'Mozilla/5.0 (Linux; Android 14; SM-S921B) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/26.0 Chrome/122.0.0.0 Mobile Safari/537.36',
];
const REFERRERS = ['', '', '', '', '', '', '', 'instagram.com', 't.co', 'example.org'];
const COUNTRIES = ['DE', 'FR', 'GB', 'US', 'JP', 'BR', 'IN', 'PL', 'ES', 'IT', 'NL', 'AT', 'CH', 'SE', 'CA', 'MX', ''];

await using running = new AsyncDisposableStack();
const folder = await mkdtemp(join(tmpdir(), 'signpost-bench-'));
running.defer(() => rm(folder, { recursive: true }));
const postgres = await startPostgres({ folder });
running.defer(() => postgres.stop());
const kafka = await kafkaForTests();
running.defer(() => kafka?.stop());
const database = await openDatabase(postgres.url, 8, entities);
running.defer(() => database.close());
const { pool } = database;
await database.migrate();
const logger = pino({ level: 'warn' });
const log = await openLog({
  kafkaBrokers: kafka ? [kafka.brokers] : [],
  databaseUrl: postgres.url,
  clientId: 'bench',
  logger,
});
running.defer(() => log.close());
await log.ensureTopics(TOPICS);

const durations = { recorded: [] as number[], copied: [] as number[] };
// The first round only warms up.
for (let round = 0; round <= ROUNDS; round++) {
  await pool.query(`truncate scans, scan_visitors, scan_days, scan_hours, scan_values, scan_targets, scan_totals,
                             scan_increments, scan_rollups`);
  await publishAll();
  const recorded = await recordAll();
  const rows = await recordedRows();
  await pool.query('truncate scans');
  const copied = await timed(() => copy(rows));
  if (round === 0) continue;
  durations.recorded.push(recorded);
  durations.copied.push(copied);
}
const copied = median(durations.copied);
const printRate = (what: string, ms: number) =>
  console.log(`${what}: ${Math.round((COUNT / ms) * 1_000)} scans/s, ${(copied / ms).toFixed(2)} of COPY`);
console.log(`${COUNT} scans in ${kafka ? 'Kafka' : 'Postgres'}, medians of ${ROUNDS} interleaved rounds`);
printRate('recorded with every counter', median(durations.recorded));
printRate('COPY of the same rows on one connection', copied);

async function publishAll(): Promise<void> {
  const start = Date.now() - DAYS * DAY_MS;
  const scanned = zipf(Array.from({ length: CODES }, newScannedCode));
  for (let first = 0; first < COUNT; first += CHUNK) {
    const records = Array.from({ length: Math.min(CHUNK, COUNT - first) }, (_, index) => {
      const [a = 0, b = 0, c = 0, d = 0] = randomBytes(4);
      return scanRecord(scanned(), {
        at: Math.floor(start + ((first + index) / COUNT) * DAYS * DAY_MS),
        userAgent: AGENTS[a % AGENTS.length] as string,
        referrerHost: REFERRERS[b % REFERRERS.length] as string,
        // Some 50,000 visitors, of some countries.
        visitor: visitor(c * 256 + d),
        country: COUNTRIES[c % COUNTRIES.length] as string,
      });
    });
    await log.publish(SCANS.name, records);
  }
}

/** Starts a recorder; returns the time until no scan waited, in ms. */
async function recordAll(): Promise<number> {
  const start = performance.now();
  const recorder = startRecorder({ log, database, logger });
  while ((await waitingRecords(pool, log)) > 0) await sleep(10);
  const ms = performance.now() - start;
  await recorder.stop();
  const { rows } = await pool.query<{ scans: number }>('select count(*)::integer as scans from scans');
  if (rows[0]?.scans !== COUNT) throw new Error(`${rows[0]?.scans} of ${COUNT} scans were recorded`);
  return ms;
}

/** Returns a function that chooses one of `things` by Zipf's law, the first one most often. */
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

/** The recorded rows in the text format of COPY, in time order. */
async function recordedRows(): Promise<Buffer[]> {
  const { rows } = await pool.query('select * from scans order by scanned_at');
  const lines = rows.map(
    (row) =>
      `${Object.values(row)
        .map((value) => value ?? '\\N')
        .join('\t')}\n`,
  );
  return Array.from({ length: Math.ceil(COUNT / CHUNK) }, (_, part) =>
    Buffer.from(lines.slice(part * CHUNK, (part + 1) * CHUNK).join('')),
  );
}

async function copy(rows: readonly Buffer[]): Promise<void> {
  const client = await pool.connect();
  try {
    await pipeline(Readable.from(rows), client.query(copyFrom('copy scans from stdin')));
  } finally {
    client.release();
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}
