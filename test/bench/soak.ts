/**
 * A soak test of the recorder: scans are published to the log at a steady rate, after which every scan must be counted,
 * none may wait, and memory usage must be what it was.
 *
 *   node test/bench/soak.ts [seconds] [scans a second]      default: 20 and 2,000
 *
 * Half of the scans are of one code. Starts its own Postgres, which contains the log.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { openPostgresLog } from '../../common/log/postgres.ts';
import { SCANS, TOPICS } from '../../common/log/topics.ts';
import { DAY_MS } from '../../common/runtime/durations.ts';
import { startPostgres } from '../../local/postgres.ts';
import { openDatabase } from '../../src/db/database.ts';
import { entities } from '../../src/entities.ts';
import { auditScans } from '../../src/scans/ledger/audit-scans.ts';
import { waitingRecords } from '../../src/scans/ledger/ledger.ts';
import { startRecorder } from '../../src/scans/recording/recorder.ts';
import { newScannedCode, type ScannedCode, scanRecord, visitor } from '../../src/scans/scans.fixture.ts';

const SECONDS = Number(process.argv[2] ?? 20);
const RATE = Number(process.argv[3] ?? 2_000);
const PUBLISHES_PER_SECOND = 10;

const logger = pino({ level: 'warn' });
const folder = await mkdtemp(join(tmpdir(), 'signpost-soak-'));
const postgres = await startPostgres({ folder });
const database = await openDatabase(postgres.url, 6, entities);
const log = openPostgresLog({ url: postgres.url, clientId: 'soak', logger });
try {
  await database.migrate();
  await log.ensureTopics(TOPICS);
  const recorder = startRecorder({ log, database, logger });
  const codes = Array.from({ length: 200 }, newScannedCode);
  const waiting = async () => waitingRecords(database.pool, log);
  const start = Date.now();
  let [sent, maxLag] = [0, 0];
  for (let publish = 1; publish <= SECONDS * PUBLISHES_PER_SECOND; publish++) {
    const records = Array.from({ length: RATE / PUBLISHES_PER_SECOND }, (_, index) => {
      const code = codes[index % 2 === 0 ? 0 : (publish + index) % codes.length] as ScannedCode;
      return scanRecord(code, { visitor: visitor((publish % 200) * 250 + (index % 250)) });
    });
    await log.publish(SCANS.name, records);
    sent += records.length;
    if (publish % (PUBLISHES_PER_SECOND * 5) === 0) {
      const lag = await waiting();
      maxLag = Math.max(maxLag, lag);
      console.log(`${publish / PUBLISHES_PER_SECOND} s: ${sent} sent, ${lag} waiting, ${memory()} MB`);
    }
    await sleep(Math.max(start + (publish * 1_000) / PUBLISHES_PER_SECOND - Date.now(), 0));
  }
  const ended = Date.now();
  while ((await waiting()) > 0) await sleep(50);
  console.log(`lag back to zero after ${Date.now() - ended} ms; at most ${maxLag} waited; ${memory()} MB`);
  const { rows, counted, differences } = await auditScans(database, { from: start - DAY_MS, to: Date.now() });
  console.log(`${sent} sent, ${rows} recorded, ${counted} counted, ${differences.length} differences`);
  if (rows !== sent || counted !== sent || differences.length > 0) process.exitCode = 1;
  await recorder.stop();
} finally {
  await log.close();
  await database.close();
  await postgres.stop();
  await rm(folder, { recursive: true });
}

/** The heap of this process in MiB, after a garbage collection if run with `--expose-gc`. */
function memory(): number {
  globalThis.gc?.();
  return Math.round(process.memoryUsage().heapUsed / 2 ** 20);
}
