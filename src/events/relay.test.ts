import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, beforeEach, describe, expect, inject, type MockInstance, onTestFinished, test, vi } from 'vitest';
import { openKafkaLog } from '../../common/log/kafka.ts';
import type { Log, NewRecord } from '../../common/log/log.ts';
import { openPostgresLog } from '../../common/log/postgres.ts';
import { transaction } from '../../common/postgres/sql.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { outboxPublished } from '../../test/harness/outbox-published.ts';
import { recordingLogger } from '../../test/harness/recording-logger.ts';
import { LOCKS } from '../db/locks.ts';
import { listen } from '../db/notifications.ts';
import { addToOutbox } from './outbox.ts';
import { OutboxReader } from './outbox-reader.ts';
import { type Relay, startRelay } from './relay.ts';

const EVENTUALLY = { timeout: 15_000, interval: 25 };
const TOPIC = { name: 'test.relay', partitions: 3, retention: 3_600_000 };
const logger = pino({ level: 'silent' });
const { url } = await freshDatabase();
const pool = new pg.Pool({ connectionString: url, max: 20 });
pool.on('error', () => undefined);
const log = openPostgresLog({ url, clientId: 'signpost-test', logger });
await log.ensureTopics([TOPIC]);
const notifications = listen(pool, logger);
const relays: Relay[] = [];
afterAll(async () => {
  await Promise.all(relays.map((relay) => relay.stop()));
  await notifications.stop();
  await log.close();
  await pool.end();
});

beforeEach(() => pool.query('truncate outbox, log_records'));

/** Starts a relay; `wrap` may replace the `publish` of its leaders. */
function startTestRelay(
  wrap: (publish: Log['publish']) => Log['publish'] = (publish) => publish,
  over = log,
  retentionHours = 24,
): Relay {
  const openFencedPublisher: Log['openFencedPublisher'] = async (...options) => {
    const publisher = await over.openFencedPublisher(...options);
    return { ...publisher, publish: wrap(publisher.publish) };
  };
  const relay = startRelay({ pool, log: { ...over, openFencedPublisher }, notifications, logger, retentionHours });
  relays.push(relay);
  return relay;
}

const record = (key: string, value: number) => ({ topic: TOPIC.name, key, value: Buffer.from(String(value)) });

async function published(): Promise<{ key: string; value: number }[]> {
  const { rows } = await pool.query<{ key: string; value: Buffer }>(
    'select key, value from log_records where topic = $1 order by partition, "offset"',
    [TOPIC.name],
  );
  return rows.map(({ key, value }) => ({ key, value: Number(value) }));
}

test('a record of a rolled-back transaction is never published, one of a committed transaction is', async () => {
  const relay = startTestRelay();
  const aborted = transaction(pool, async (tx) => {
    await addToOutbox(tx, [record('aborted', 1)]);
    throw new Error('rolled back on purpose');
  });
  await expect(aborted).rejects.toThrow('rolled back on purpose');
  await transaction(pool, (tx) => addToOutbox(tx, [record('kept', 1)]));
  await vi.waitFor(async () => expect(await published()).toEqual([{ key: 'kept', value: 1 }]), EVENTUALLY);
  await relay.stop();
});

test('a relay publishes nothing while another one leads, and is healthy', async () => {
  const other = await pool.connect();
  onTestFinished(() => other.release(true));
  await other.query('select pg_advisory_lock($1)', [LOCKS.relay]);
  const asked: MockInstance = vi.spyOn(pg.Client.prototype, 'query');
  onTestFinished(() => asked.mockRestore());
  const attempts = () => asked.mock.calls.filter(([query]) => query.name === 'events_outbox_leadership').length;
  const relay = startTestRelay();
  await transaction(pool, (tx) => addToOutbox(tx, [record('led', 1)]));
  await vi.waitFor(() => expect(attempts()).toBeGreaterThan(1), EVENTUALLY);
  expect(relay.healthy()).toBe(true);
  expect(await published()).toEqual([]);
  await other.query('select pg_advisory_unlock($1)', [LOCKS.relay]);
  await vi.waitFor(async () => expect(await published()).toEqual([{ key: 'led', value: 1 }]), EVENTUALLY);
  await relay.stop();
});

test('with two relays and a log that fails every other time, nothing is lost and each key keeps its order', async () => {
  let calls = 0;
  const failing = (publish: Log['publish']) => async (topic: string, records: readonly NewRecord[]) => {
    if (calls++ % 2 === 0) throw new Error('the broker is unavailable');
    await publish(topic, records);
  };
  const both = [startTestRelay(failing), startTestRelay(failing)];
  for (let value = 0; value < 60; value++) {
    await transaction(pool, (tx) => addToOutbox(tx, [record(`key ${value % 3}`, value)]));
  }
  await outboxPublished(pool);
  const seen = Map.groupBy(await published(), ({ key }) => key);
  for (const [index, key] of ['key 0', 'key 1', 'key 2'].entries()) {
    const values = seen.get(key)?.map(({ value }) => value);
    expect(values).toEqual(Array.from({ length: 20 }, (_, round) => round * 3 + index));
  }
  await Promise.all(both.map((relay) => relay.stop()));
});

test('a relay that fails every second says so once a minute', async () => {
  let attempts = 0;
  const openFencedPublisher = async () => {
    attempts++;
    throw new Error('away');
  };
  await transaction(pool, (tx) => addToOutbox(tx, [record('waiting', 1)]));
  const { lines, logger: recording } = recordingLogger();
  const failing = { ...log, openFencedPublisher };
  const relay = startRelay({ pool, log: failing, notifications, logger: recording, retentionHours: 0 });
  relays.push(relay);
  await expect.poll(() => attempts, EVENTUALLY).toBeGreaterThan(2);
  await relay.stop();
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ level: 40, err: { message: 'away' } }]);
});

test('while the log refuses a topic, those of others are published once, up to 10,000 holes, and its own wait in order', async () => {
  const refused = `test.refused.${randomUUID()}`;
  await log.ensureTopics([{ ...TOPIC, name: refused }]);
  let refuses = true;
  let refusals = 0;
  const refusing = (publish: Log['publish']) => async (topic: string, records: readonly NewRecord[]) => {
    if (refuses && topic === refused) {
      refusals++;
      throw new Error('unknown topic');
    }
    await publish(topic, records);
  };
  const relay = startTestRelay(refusing);
  const both = (value: number) => [{ ...record('k', value), topic: refused }, record('k', value)];
  // More rows of the refused topic than are read at once.
  const first = Array.from({ length: 1_500 }, (_, value) => ({ ...record('k', value), topic: refused }));
  await transaction(pool, (tx) => addToOutbox(tx, first));
  for (let value = 1_500; value < 1_503; value++) {
    await transaction(pool, (tx) => addToOutbox(tx, both(value)));
    await expect.poll(async () => (await published()).at(-1)?.value, EVENTUALLY).toBe(value);
    expect(relay.healthy()).toBe(false);
  }
  const before = refusals;
  await expect.poll(() => refusals, EVENTUALLY).toBeGreaterThan(before + 1);
  const others = Array.from({ length: 3 }, (_, index) => ({ key: 'k', value: 1_500 + index }));
  expect(await published()).toEqual(others);
  expect((await pool.query('select from outbox_waiting')).rowCount).toBe(1_503);
  const holes = vi.spyOn(OutboxReader.prototype, 'holes', 'get').mockReturnValue(10_000);
  await transaction(pool, (tx) => addToOutbox(tx, [record('k', 1_503)]));
  const beforeMore = refusals;
  await expect.poll(() => refusals, EVENTUALLY).toBeGreaterThan(beforeMore + 1);
  expect(await published()).toEqual(others);
  holes.mockRestore();
  others.push({ key: 'k', value: 1_503 });
  refuses = false;
  await outboxPublished(pool);
  await expect.poll(() => relay.healthy(), EVENTUALLY).toBe(true);
  await relay.stop();
  expect(await published()).toEqual(others);
  const { rows } = await pool.query('select value from log_records where topic = $1 order by "offset"', [refused]);
  expect(rows.map(({ value }) => Number(value))).toEqual(Array.from({ length: 1_503 }, (_, value) => value));
});

test('a relay whose connection breaks continues, and loses nothing', async () => {
  const relay = startTestRelay();
  for (let value = 0; value < 30; value++) {
    await vi.waitFor(() => transaction(pool, (tx) => addToOutbox(tx, [record('k', value)])), EVENTUALLY);
    if (value % 10 === 5) {
      await vi.waitFor(
        () =>
          pool.query(
            `select pg_terminate_backend(pid) from pg_stat_activity
             where datname = current_database() and pid <> pg_backend_pid()`,
          ),
        EVENTUALLY,
      );
    }
  }
  await outboxPublished(pool);
  const values = new Set((await published()).map(({ value }) => value));
  expect(values.size).toBe(30);
  await relay.stop();
});

test('a notification wakes a sleeping relay, again after its listening connection was lost', async () => {
  // With polls an hour apart, nothing else could have woken it.
  const rare = listen(pool, logger, { fallbackMs: 3_600_000 });
  const relay = startRelay({ pool, log, notifications: rare, logger, retentionHours: 24 });
  relays.push(relay);
  const asleep = `select pid from pg_locks where locktype = 'advisory' and objid = ${LOCKS.relaySleeps} and granted
    and mode = 'ExclusiveLock' and database = (select oid from pg_database where datname = current_database())`;
  const change = async (value: number) => {
    await vi.waitFor(async () => expect((await pool.query(asleep)).rowCount).toBe(1), EVENTUALLY);
    await transaction(pool, (tx) => addToOutbox(tx, [record('k', value)]));
    await vi.waitFor(async () => expect((await published()).at(-1)?.value).toBe(value), EVENTUALLY);
  };
  for (let value = 0; value < 10; value++) await change(value);
  const ended = await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and query = 'listen signpost_work'`,
  );
  expect(ended.rowCount).toBeGreaterThan(0);
  for (let value = 10; value < 20; value++) await change(value);
  await relay.stop();
  await rare.stop();
});

test('a transaction that began to write while the relay was awake keeps it awake', async () => {
  const rare = listen(pool, logger, { fallbackMs: 3_600_000 });
  const relay = startRelay({ pool, log, notifications: rare, logger, retentionHours: 24 });
  relays.push(relay);
  await using writer = await connect();
  for (let value = 0; value < 50; value++) {
    await transaction(pool, (tx) => addToOutbox(tx, [record('other', value)]));
    await writer.client.query('begin');
    await addToOutbox(writer.client, [record('k', value)]);
    // Long enough for the relay to publish the first one and to look for more.
    await sleep(value % 25);
    await writer.client.query('commit');
    await outboxPublished(pool);
  }
  await relay.stop();
  await rare.stop();
});

describe.each([24, 0])('an outbox with a retention of %d hours', (retentionHours) => {
  const many = (count: number) => Array.from({ length: count }, (_, value) => record(`key ${value % 7}`, value));
  /** Does not read the outbox, so that only the relay's reads count. */
  const expectAllPublished = async () => {
    const { rowCount } = await pool.query(
      'select from outbox_position p join outbox_id_seq s on p.last = s.last_value',
    );
    expect(rowCount).toBe(1);
  };

  /** Cost of reading the outbox so far; Postgres updates a connection's statistics once a second. */
  async function cost(): Promise<{ sequential: number; scans: number; entries: number }> {
    const { rows } = await pool.query(
      `select sum(t.seq_tup_read) as sequential, sum(i.idx_scan) as scans, sum(i.idx_tup_read) as entries
       from pg_stat_user_tables t join pg_stat_user_indexes i using (relid) where t.relname ~ '^outbox_[0-9]+$'`,
    );
    return { sequential: Number(rows[0].sequential), scans: Number(rows[0].scans), entries: Number(rows[0].entries) };
  }

  test('keeps published rows for its retention', async () => {
    const relay = startTestRelay(undefined, undefined, retentionHours);
    await transaction(pool, (tx) => addToOutbox(tx, many(3_000)));
    await vi.waitFor(expectAllPublished, EVENTUALLY);
    await relay.stop();
    expect((await pool.query('select from outbox')).rowCount).toBe(retentionHours === 0 ? 0 : 3_000);
    expect((await published()).length).toBe(3_000);
  });

  test('is read by its index even though it was empty when the statement was prepared', async () => {
    const relay = startTestRelay(undefined, undefined, retentionHours);
    await transaction(pool, (tx) => addToOutbox(tx, [record('first', 1)]));
    await vi.waitFor(expectAllPublished, EVENTUALLY);
    const before = await cost();
    await transaction(pool, (tx) => addToOutbox(tx, many(20_000)));
    await vi.waitFor(expectAllPublished, EVENTUALLY);
    await relay.stop();
    await vi.waitFor(
      async () => expect((await cost()).entries - before.entries).toBeGreaterThanOrEqual(20_000),
      EVENTUALLY,
    );
    expect((await cost()).sequential - before.sequential).toBeLessThan(20_000);
  });

  test('published rows are not read again, even while another transaction is open', async () => {
    await using reader = await connect();
    await reader.client.query('begin isolation level repeatable read');
    await reader.client.query('select from codes');
    const relay = startTestRelay(undefined, undefined, retentionHours);
    for (let round = 0; round < 2; round++) {
      await transaction(pool, (tx) => addToOutbox(tx, many(10_000)));
      await vi.waitFor(expectAllPublished, EVENTUALLY);
    }
    // One row at a time: the statistics first have to include the reads above, and then a hundred further ones.
    const readAHundredTimes = async () => {
      const before = await cost();
      await vi.waitFor(async () => {
        await transaction(pool, (tx) => addToOutbox(tx, [record('k', 1)]));
        expect((await cost()).scans - before.scans).toBeGreaterThan(100);
      }, EVENTUALLY);
    };
    await readAHundredTimes();
    const before = await cost();
    await readAHundredTimes();
    const after = await cost();
    expect((after.entries - before.entries) / (after.scans - before.scans)).toBeLessThan(10);
    await relay.stop();
  });

  test('loses nothing of a transaction that took its ids early and commits late, even across changes of leader', async () => {
    let relay = startTestRelay(undefined, undefined, retentionHours);
    await using late = await connect();
    await late.client.query('begin');
    await addToOutbox(late.client, [record('late', 1)]);
    for (let round = 0; round < 3; round++) {
      await transaction(pool, (tx) => addToOutbox(tx, many(2_500)));
      await vi.waitFor(expectAllPublished, EVENTUALLY);
      await relay.stop();
      relay = startTestRelay(undefined, undefined, retentionHours);
    }
    await late.client.query('commit');
    await vi.waitFor(async () => {
      expect((await published()).filter(({ key }) => key === 'late')).toEqual([{ key: 'late', value: 1 }]);
    }, EVENTUALLY);
    await vi.waitFor(expectAllPublished, EVENTUALLY);
    await relay.stop();
    // A change of leader publishes nothing twice either.
    expect((await published()).length).toBe(7_501);
  });

  test('is read and published in parts of some megabytes, however large its rows are', async () => {
    const sizes: number[] = [];
    const measuring = (publish: Log['publish']) => (topic: string, records: readonly NewRecord[]) => {
      sizes.push(records.reduce((bytes, { value }) => bytes + (value?.length ?? 0), 0));
      return publish(topic, records);
    };
    const large = (key: string) => ({ topic: TOPIC.name, key, value: Buffer.alloc(2 ** 20, '1') });
    const keys = (prefix: string) => Array.from({ length: 12 }, (_, n) => `${prefix} ${n}`);
    await using late = await connect();
    await late.client.query('begin');
    await addToOutbox(late.client, keys('late').map(large));
    await transaction(pool, (tx) => addToOutbox(tx, keys('early').map(large)));
    const relay = startTestRelay(measuring, undefined, retentionHours);
    await vi.waitFor(expectAllPublished, EVENTUALLY);
    await late.client.query('commit');
    const { rows } = await vi.waitFor(async () => {
      const found = await pool.query<{ key: string }>('select key from log_records order by partition, "offset"');
      expect(found.rows.length).toBe(24);
      return found;
    }, EVENTUALLY);
    expect(new Set(rows.map(({ key }) => key))).toEqual(new Set([...keys('early'), ...keys('late')]));
    await relay.stop();
    expect(Math.max(...sizes)).toBeLessThanOrEqual(9 * 2 ** 20);
  });

  test('stops looking for an id whose transaction was rolled back', async () => {
    const relay = startTestRelay(undefined, undefined, retentionHours);
    const holes = async () => (await pool.query<{ holes: string }>('select holes from outbox_position')).rows[0]?.holes;
    await using late = await connect();
    await late.client.query('begin');
    await addToOutbox(late.client, [record('late', 1)]);
    await transaction(pool, (tx) => addToOutbox(tx, [record('k', 1)]));
    await vi.waitFor(async () => expect(await holes()).not.toBe('{}'), EVENTUALLY);
    await late.client.query('rollback');
    await vi.waitFor(async () => {
      await transaction(pool, (tx) => addToOutbox(tx, [record('k', 2)]));
      expect(await holes()).toBe('{}');
    }, EVENTUALLY);
    await relay.stop();
  });
});

const brokers = inject('kafkaBrokers');
const overKafka = () => openKafkaLog({ brokers: (brokers ?? '').split(','), clientId: 'signpost-test', logger });
const overPostgres = () => openPostgresLog({ url, clientId: 'signpost-test', logger });

describe.each([
  ['Postgres', overPostgres, false],
  ['Kafka', overKafka, brokers === null],
] as const)('a leader that was paused, over %s', (_, open, missing) => {
  test.skipIf(missing).each(['it published', 'it opened its publisher'])(
    'before %s, appends nothing after records of its successor, and continues when it leads again',
    async (step) => {
      const [oldLog, newLog] = [open(), open()];
      onTestFinished(async () => void (await Promise.all([oldLog.close(), newLog.close()])));
      const topic = `test.routes.${randomUUID()}`;
      await oldLog.ensureTopics([{ name: topic, partitions: 1, retention: 'compact' }]);
      const change = (version: number) =>
        transaction(pool, (tx) => addToOutbox(tx, [{ ...record('code', version), topic }]));
      const expectAllPublished = () =>
        vi.waitFor(async () => expect((await pool.query('select from outbox_waiting')).rowCount).toBe(0), EVENTUALLY);
      const versions: number[] = [];
      newLog.follow({
        topic,
        from: new Map(),
        handle: (records) => void versions.push(...records.map(({ value }) => Number(value))),
      });

      const paused = Promise.withResolvers<void>();
      const resume = Promise.withResolvers<void>();
      const late = Promise.withResolvers<string>();
      let pausesBefore = step === 'it published' ? undefined : step;
      const pauseBefore = async (next: string) => {
        if (next !== pausesBefore) return false;
        pausesBefore = undefined;
        paused.resolve();
        await resume.promise;
        return true;
      };
      const old = startTestRelay(
        (publish) => async (to, records) => {
          if (!(await pauseBefore('it published'))) return publish(to, records);
          await publish(to, records).then(
            () => late.resolve('appended'),
            (error: Error) => {
              late.resolve('rejected');
              throw error;
            },
          );
        },
        {
          ...oldLog,
          async openFencedPublisher(...options) {
            await pauseBefore('it opened its publisher');
            return oldLog.openFencedPublisher(...options);
          },
        },
      );
      if (step === 'it published') {
        await change(0);
        await expectAllPublished();
        pausesBefore = step;
      }
      await change(1);
      await paused.promise;
      const ended = await pool.query(
        `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted and objid = $1
         and database = (select oid from pg_database where datname = current_database())`,
        [LOCKS.relay],
      );
      expect(ended.rowCount).toBe(1);

      const successor = startTestRelay(undefined, newLog);
      await expectAllPublished();
      await change(2);
      await expectAllPublished();
      if (step === 'it published') {
        resume.resolve();
        expect(await late.promise).toBe('rejected');
      }
      await successor.stop();
      // What it was about to append comes before the records that it appends when it leads again.
      resume.resolve();
      await change(3);
      await expectAllPublished();
      await vi.waitFor(() => expect(versions).toEqual(step === 'it published' ? [0, 1, 2, 3] : [1, 2, 3]), EVENTUALLY);
      await old.stop();
    },
    60_000,
  );
});

test.skipIf(brokers === null)(
  'while a topic is missing in Kafka, those of others are published once',
  async () => {
    const kafka = overKafka();
    const [present, missing] = [`test.present.${randomUUID()}`, `test.missing.${randomUUID()}`];
    await kafka.ensureTopics([{ ...TOPIC, name: present }]);
    const received: string[] = [];
    const follow = (topic: string) => {
      const handle = (records: readonly { key: string }[]) =>
        void received.push(...records.map(({ key }) => `${topic} ${key}`));
      kafka.follow({ topic, from: new Map(), handle });
    };
    follow(present);
    const keys = ['one', 'two', 'three'];
    const once = (topic: string) => keys.map((key) => `${topic} ${key}`).sort();
    const records = keys.flatMap((key) => [missing, present].map((topic) => ({ topic, key, value: Buffer.from('1') })));
    await transaction(pool, (tx) => addToOutbox(tx, records));
    const { lines, logger: recording } = recordingLogger();
    const relay = startRelay({ pool, log: kafka, notifications, logger: recording, retentionHours: 24 });
    relays.push(relay);
    await expect.poll(() => received.toSorted(), EVENTUALLY).toEqual(once(present));
    const messages = () => lines.map((line) => JSON.parse(line).err.message);
    await expect.poll(messages, EVENTUALLY).toEqual([expect.stringContaining(missing)]);
    await sleep(3_000);
    expect(received.toSorted()).toEqual(once(present));
    await kafka.ensureTopics([{ ...TOPIC, name: missing }]);
    follow(missing);
    const both = [...once(missing), ...once(present)];
    await expect.poll(() => received.toSorted(), EVENTUALLY).toEqual(both);
    await outboxPublished(pool);
    expect(received.toSorted()).toEqual(both);
    await relay.stop();
    await kafka.close();
  },
  60_000,
);

describe.skipIf(brokers === null).each([24, 0])('over Kafka, with a retention of %d hours', (retentionHours) => {
  test('a record that is too large for its topic is logged and left out, and stays in the outbox', async () => {
    const kafka = overKafka();
    const admin = new kafkajs.Kafka({
      brokers: (brokers ?? '').split(','),
      logLevel: kafkajs.logLevel.NOTHING,
    }).admin();
    onTestFinished(async () => void (await Promise.all([kafka.close(), admin.disconnect()])));
    await admin.connect();
    const topic = `test.large.${randomUUID()}`;
    const configEntries = [{ name: 'max.message.bytes', value: '100000' }];
    await admin.createTopics({ topics: [{ topic, numPartitions: 2, configEntries }] });
    const received: string[] = [];
    kafka.follow({
      topic,
      from: new Map(),
      handle: (records) => void received.push(...records.map(({ key }) => key)),
    });
    // Together, those of a partition are too large too.
    const keys = Array.from({ length: 50 }, (_, n) => `key ${n}`);
    const records = keys.map((key) => ({ topic, key, value: randomBytes(9_000) }));
    const large = ['large 1', 'large 2'].map((key) => ({ topic, key, value: randomBytes(100_000) }));
    const [one, two] = large;
    if (!one || !two) throw new Error('there are two');
    await transaction(pool, (tx) =>
      addToOutbox(tx, [...records.slice(0, 20), one, ...records.slice(20, 40), two, ...records.slice(40)]),
    );
    const { lines, logger: recording } = recordingLogger();
    const relay = startRelay({ pool, log: kafka, notifications, logger: recording, retentionHours });
    relays.push(relay);
    await expect.poll(() => new Set(received), EVENTUALLY).toEqual(new Set(keys));
    await outboxPublished(pool);
    expect(relay.healthy()).toBe(true);
    await relay.stop();
    expect(lines.map((line) => JSON.parse(line))).toMatchObject(
      large.map(({ key, value }) => ({
        level: 50,
        msg: 'a record is too large for its topic',
        topic,
        key,
        bytes: value.length,
      })),
    );
    const { rows } = await pool.query<{ key: string }>('select key from outbox order by id');
    const kept = rows.map(({ key }) => key);
    expect(retentionHours === 0 ? kept : kept.filter((key) => key.startsWith('large'))).toEqual(['large 1', 'large 2']);
  });
});

/** Opens a separate connection. */
async function connect(): Promise<{ client: pg.Client } & AsyncDisposable> {
  const client = new pg.Client(url);
  await client.connect();
  return { client, [Symbol.asyncDispose]: () => client.end() };
}
