import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { pino } from 'pino';
import { describe, expect, inject, test, vi } from 'vitest';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import { openKafkaLog } from '../../common/log/kafka.ts';
import { EVENTS } from '../../common/log/topics.ts';
import { transaction } from '../../common/postgres/sql.ts';
import { cloudEvent } from '../../src/events/cloud-event.ts';
import { addToOutbox } from '../../src/events/outbox.ts';
import { freshDatabase } from '../harness/database.ts';
import { startKafka } from '../harness/kafka.ts';
import { outboxPublished } from '../harness/outbox-published.ts';

const WRITERS = 6;
const SUBJECTS = 20;
const BROKER_KILLS = 3;
const brokers = inject('kafkaBrokers');
// A broker that this run did not start must not be killed.
const isOwnBroker = brokers !== null && !process.env.KAFKA_BROKERS;

describe.skipIf(!isOwnBroker)('events under kills', () => {
  test('relay and broker are killed repeatedly under writes: every committed event is on the topic, in order', async () => {
    await using running = new AsyncDisposableStack();
    const broker = await startKafka();
    running.defer(() => broker.stop());
    const { url } = await freshDatabase();
    const pool = new pg.Pool({ connectionString: url, max: 10 });
    running.defer(() => pool.end());
    const log = openKafkaLog({
      brokers: [broker.brokers],
      clientId: 'signpost-test',
      logger: pino({ level: 'silent' }),
    });
    running.defer(() => log.close());
    await log.ensureTopics([EVENTS]);
    await pool.query('create table subjects (id text primary key, version integer not null default 0)');
    await pool.query('create table ledger (event text primary key, subject text not null, version integer not null)');
    const subjects = Array.from({ length: SUBJECTS }, () => encodeId('qr', newUuid()));
    await pool.query('insert into subjects (id) select unnest($1::text[])', [subjects]);

    let stopping = false;
    const accountId = encodeId('acct', newUuid());
    const changeOne = (change: number) =>
      transaction(pool, async (tx) => {
        const subject = subjects[Math.floor(Math.random() * SUBJECTS)] ?? '';
        const { rows } = await tx.query('update subjects set version = version + 1 where id = $1 returning version', [
          subject,
        ]);
        const { version } = rows[0];
        const event = cloudEvent({ type: 'qr.updated', accountId, subject, at: Date.now(), data: { version } });
        await addToOutbox(tx, [event]);
        await tx.query('insert into ledger values ($1, $2, $3)', [event.headers?.ce_id, subject, version]);
        if (change % 10 === 9) throw new Error('roll back');
      });
    const writing = Array.from({ length: WRITERS }, async () => {
      for (let change = 0; !stopping; change++) {
        await changeOne(change).catch(() => undefined);
        await sleep(5);
      }
    });

    let relayKills = 0;
    const relaying = (async () => {
      while (!stopping) {
        const relay = fork(join(import.meta.dirname, 'relay-process.fixture.ts'), [url, broker.brokers], {
          execArgv: [],
        });
        const gone = once(relay, 'exit');
        await Promise.race([once(relay, 'message'), gone]);
        await sleep(200 + Math.random() * 1_500);
        relay.kill('SIGKILL');
        await gone;
        relayKills++;
      }
    })();
    for (let kill = 0; kill < BROKER_KILLS; kill++) {
      await sleep(2_500 + Math.random() * 1_500);
      await broker.kill();
      await sleep(500);
      await broker.start();
    }
    await sleep(1_000);
    stopping = true;
    await Promise.all([...writing, relaying]);

    const last = fork(join(import.meta.dirname, 'relay-process.fixture.ts'), [url, broker.brokers], { execArgv: [] });
    running.defer(() => void last.kill('SIGKILL'));
    await outboxPublished(pool);

    const { rows: ledger } = await pool.query<{ event: string; subject: string; version: number }>(
      'select event, subject, version from ledger',
    );
    const versions = new Map<string, number[]>();
    const seen = new Set<string>();
    const ends = await log.ends(EVENTS.name);
    const total = [...ends.values()].reduce((sum, end) => sum + Number(end), 0);
    let read = 0;
    const following = log.follow({
      topic: EVENTS.name,
      from: new Map(),
      handle(records) {
        for (const { key, headers, value } of records) {
          read++;
          if (seen.has(headers.ce_id ?? '')) continue;
          seen.add(headers.ce_id ?? '');
          const subjectVersions = versions.get(key) ?? [];
          versions.set(key, subjectVersions);
          subjectVersions.push(JSON.parse(String(value)).version);
        }
      },
    });
    await vi.waitFor(() => expect(read).toBe(total), { timeout: 30_000, interval: 50 });
    await following.stop();

    expect(relayKills).toBeGreaterThan(3);
    expect(ledger.length).toBeGreaterThan(500);
    // No event was lost, and none of a transaction that was rolled back was published.
    expect([...seen].sort()).toEqual(ledger.map(({ event }) => event).sort());
    // Duplicates follow the first occurrence, so the first occurrences of each subject are in order.
    for (const subject of subjects) {
      const written = ledger.filter((entry) => entry.subject === subject).length;
      expect(versions.get(subject) ?? []).toEqual(Array.from({ length: written }, (_, index) => index + 1));
    }
  }, 240_000);
});
