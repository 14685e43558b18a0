/**
 * A soak of the recorder: scans go through the log at a steady rate, and then every one has to be counted, nothing may
 * wait, and memory has to be where it was.
 *
 *   node test/bench/soak.ts [seconds] [scans a second]      20 and 2,000 unless told
 *
 * Half of the scans are of one code. Starts a Postgres of its own, with the log in it.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { openPostgresLog } from '../../common/log/postgres.ts';
import { SCANS, TOPICS } from '../../common/log/topics.ts';
import { startPostgres } from '../../local/postgres.ts';
import { openDatabase } from '../../src/db/database.ts';
import { entities } from '../../src/entities.ts';
import { DAY_MS } from '../../src/scans/days.ts';
import { auditScans } from '../../src/scans/ledger/audit.ts';
import { waitingRecords } from '../../src/scans/ledger/ledger.ts';
import { startRecorder } from '../../src/scans/recording/recorder.ts';
import { newScannedCode, type ScannedCode, scanRecord, visitor } from '../../src/scans/scans.fixture.ts';

const SECONDS = Number(process.argv[2] ?? 20);
const RATE = Number(process.argv[3] ?? 2_000);
const TURNS_A_SECOND = 10;

const logger = pino({ level: 'warn' });
const folder = await mkdtemp(join(tmpdir(), 'signpost-soak-'));
const postgres = await startPostgres({ folder });
const database = await openDatabase(postgres.url, 6, entities);
const log = openPostgresLog({ url: postgres.url, clientId: 'soak', logger });
try {
  await database.migrate();
  await log.ensureTopics(TOPICS);
  const recorder = await startRecorder({ log, database, logger });
  const codes = Array.from({ length: 200 }, newScannedCode);
  const waiting = async () => waitingRecords(database.pool, await log.ends(SCANS.name));
  const start = Date.now();
  let [sent, most] = [0, 0];
  for (let turn = 1; turn <= SECONDS * TURNS_A_SECOND; turn++) {
    const records = Array.from({ length: RATE / TURNS_A_SECOND }, (_, index) => {
      const code = codes[index % 2 === 0 ? 0 : (turn + index) % codes.length] as ScannedCode;
      return scanRecord(code, { visitor: visitor((turn % 200) * 250 + (index % 250)) });
    });
    await log.publish(SCANS.name, records);
    sent += records.length;
    if (turn % (TURNS_A_SECOND * 5) === 0) {
      const lag = await waiting();
      most = Math.max(most, lag);
      console.log(`${turn / TURNS_A_SECOND} s: ${sent} sent, ${lag} waiting, ${memory()} MB`);
    }
    await sleep(Math.max(start + (turn * 1_000) / TURNS_A_SECOND - Date.now(), 0));
  }
  const ended = Date.now();
  while ((await waiting()) > 0) await sleep(50);
  console.log(`lag back to zero after ${Date.now() - ended} ms; at most ${most} waited; ${memory()} MB`);
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

/** What this process holds after all that can be let go is let go; run with `--expose-gc`. */
function memory(): number {
  globalThis.gc?.();
  return Math.round(process.memoryUsage().heapUsed / 2 ** 20);
}
