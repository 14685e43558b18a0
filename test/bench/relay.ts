/**
 * How fast the outbox is published to the log in Postgres, and whether it stays as fast.
 *
 *   npm run bench:relay
 *
 * Each round writes as many rows as a batch of 25,000 codes, in one transaction, to a Postgres with the settings of a
 * local run; the relay runs in this process. During the second half of the rounds a transaction is open, like that of a
 * backup, which prevents the removal of rows deleted meanwhile.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { pino } from 'pino';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import { openPostgresLog } from '../../common/log/postgres.ts';
import { ROUTES, TOPICS } from '../../common/log/topics.ts';
import { transaction } from '../../common/postgres/sql.ts';
import { startPostgres } from '../../local/postgres.ts';
import { openDatabase } from '../../src/db/database.ts';
import { listen } from '../../src/db/notifications.ts';
import { entities } from '../../src/entities.ts';
import { cloudEvent } from '../../src/events/cloud-event.ts';
import { copyToOutbox, type OutboxRecord } from '../../src/events/outbox.ts';
import { startRelayWithTopics } from '../../src/events/relay.ts';
import { outboxPublished } from '../harness/outbox-published.ts';

const CODES = 25_000;
const ROUNDS = 8;

await using running = new AsyncDisposableStack();
const folder = await mkdtemp(join(tmpdir(), 'signpost-bench-'));
running.defer(() => rm(folder, { recursive: true, force: true }));
const postgres = await startPostgres({ folder });
running.defer(() => postgres.stop());
const database = await openDatabase(postgres.url, 4, entities);
running.defer(() => database.close());
await database.migrate();
const { pool } = database;
const logger = pino({ level: 'warn' });
const log = openPostgresLog({ url: postgres.url, clientId: 'signpost-bench', logger });
running.defer(() => log.close());
const notifications = listen(pool, logger);
running.defer(() => notifications.stop());
const relay = await startRelayWithTopics(
  { ensure: () => log.ensureTopics(TOPICS) },
  { pool, log, notifications, logger, retentionHours: 24 },
);
running.defer(() => relay.stop());

const accountId = encodeId('acct', newUuid());

/** As many and as large as the records of a new code. */
function recordsOf(id: string): OutboxRecord[] {
  const data = { id, padding: 'x'.repeat(700) };
  return [
    cloudEvent({ type: 'qr.created', accountId, subject: id, at: Date.now(), data }),
    { topic: ROUTES.name, key: `code:${id}`, value: Buffer.alloc(120, 'r') },
  ];
}

async function round(): Promise<string> {
  const ids = Array.from({ length: CODES }, () => encodeId('qr', newUuid()));
  await transaction(pool, (tx) => copyToOutbox(tx, ids, recordsOf));
  const start = performance.now();
  await outboxPublished(pool);
  return `${(performance.now() - start).toFixed(0)} ms`;
}

const rows = { alone: [] as string[], 'beside an open transaction': [] as string[] };
for (let index = 0; index < ROUNDS; index++) rows.alone.push(await round());
const backup = new pg.Client(postgres.url);
await backup.connect();
await backup.query('begin isolation level repeatable read; select from outbox');
for (let index = 0; index < ROUNDS; index++) rows['beside an open transaction'].push(await round());
await backup.end();

console.log(`${2 * CODES} rows, ${ROUNDS} rounds after each other:\n`);
for (const [name, times] of Object.entries(rows)) console.log(`| ${name} | ${times.join(' | ')} |`);
