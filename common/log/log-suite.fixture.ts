import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { HOUR_MS } from '../runtime/durations.ts';
import { type ConsumeOptions, type Log, type LogRecord, type NewRecord, ReadAgain, type Topic } from './log.ts';
import type { MemberOptions } from './member.fixture.ts';
import type { LogOptions } from './open.ts';
import { readTopic } from './read-topic.ts';

/** What the suite needs of an implementation. */
export interface Harness {
  /** Opens a separate log, as another process would. */
  open(): Log;
  /** Options to open the log in a separate process. */
  readonly options: Pick<LogOptions, 'kafkaBrokers' | 'databaseUrl'>;
  /** Restarts the server with its data; undefined if the suite did not start the server. */
  readonly restart: (() => Promise<void>) | undefined;
}

const EVENTUALLY = { timeout: 25_000, interval: 25 };

/** Tests all promises of `Log`; every implementation has to pass. */
export function conformance(name: string, harness: () => Harness): void {
  describe(`the log in ${name}`, () => {
    let log: Log;
    const opened: Log[] = [];
    const open = () => {
      const another = harness().open();
      opened.push(another);
      return another;
    };

    beforeAll(() => {
      log = open();
    });
    afterAll(async () => {
      await Promise.all(opened.map((each) => each.close()));
    });

    async function newTopic(partitions = 4, retention: Topic['retention'] = HOUR_MS): Promise<string> {
      const topic = `test.${randomUUID()}`;
      await log.ensureTopics([{ name: topic, partitions, retention }]);
      return topic;
    }

    /** Joins a group and returns a list to which its records' values are added as text. */
    function collect(by: Log, options: Omit<ConsumeOptions, 'handle'>): string[] {
      const values: string[] = [];
      const { stop } = by.consume({ ...options, handle: async (records) => void values.push(...records.map(text)) });
      onTestFinished(stop);
      return values;
    }

    /** Follows a topic and returns a list to which its records are added. */
    function watch(topic: string, from: ReadonlyMap<number, bigint> = new Map()): LogRecord[] {
      const received: LogRecord[] = [];
      const { stop } = log.follow({ topic, from, handle: (records) => void received.push(...records) });
      onTestFinished(stop);
      return received;
    }

    test('returns records as they were published, including headers and null values', async () => {
      const topic = await newTopic();
      const before = Date.now();
      await log.publish(topic, [
        { key: 'a', value: Buffer.from([0, 255, 7]), headers: { ce_type: 'x', 'content-type': 'application/json' } },
        { key: 'b', value: null },
        { key: 'schön "\\{}', value: new Uint8Array(), headers: { quoted: '"\\\n€' } },
      ]);
      const received = watch(topic);
      await vi.waitFor(() => expect(received).toHaveLength(3), EVENTUALLY);
      const [a, b, c] = received.toSorted((one, other) => (one.key < other.key ? -1 : 1));
      expect([...(a?.value ?? [])]).toEqual([0, 255, 7]);
      expect(a?.headers).toEqual({ ce_type: 'x', 'content-type': 'application/json' });
      expect(b).toMatchObject({ key: 'b', value: null, headers: {} });
      expect(c).toMatchObject({ key: 'schön "\\{}', headers: { quoted: '"\\\n€' } });
      expect(c?.value).toHaveLength(0);
      for (const { timestamp } of received) expect(Math.abs(timestamp - before)).toBeLessThan(60_000);
    });

    test('accepts 20,000 records in one call, and delivers all of them to a group that joins later, each key in order', async () => {
      const topic = await newTopic();
      await log.publish(topic, numbered(20_000, 50, Buffer.alloc(200, '.').toString()));
      const sizes: number[] = [];
      const byKey = new Map<string, number[]>();
      const subscription = log.consume({
        topic,
        group: randomUUID(),
        maxRecords: 1_000,
        async handle(records) {
          sizes.push(records.length);
          for (const record of records) {
            const numbers = byKey.get(record.key) ?? [];
            byKey.set(record.key, numbers);
            numbers.push(Number.parseInt(text(record), 10));
          }
        },
      });
      onTestFinished(subscription.stop);
      await vi.waitFor(() => expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(20_000), EVENTUALLY);
      expect(Math.max(...sizes)).toBeLessThanOrEqual(1_000);
      for (const [key, numbers] of byKey) {
        expect(numbers).toEqual(Array.from({ length: 400 }, (_, nth) => nth * 50 + Number(key)));
      }
    });

    test('skips no record for a reader while several publish concurrently', async () => {
      const topic = await newTopic(2);
      const received = watch(topic);
      const publishers = [log, open(), open()];
      await Promise.all(
        publishers.map(async (publisher, who) => {
          for (let call = 0; call < 30; call++) {
            await publisher.publish(
              topic,
              Array.from({ length: 20 }, (_, nth) => ({ key: `${who} ${nth}`, value: Buffer.from(`${call}`) })),
            );
          }
        }),
      );
      await vi.waitFor(() => expect(received).toHaveLength(3 * 30 * 20), EVENTUALLY);
      const everyCall = Array.from({ length: 30 }, (_, call) => `${call}`);
      for (const records of Map.groupBy(received, ({ key }) => key).values())
        expect(records.map(text)).toEqual(everyCall);
      for (const records of Map.groupBy(received, ({ partition }) => partition).values()) {
        expect(records.map(({ offset }) => offset)).toEqual(records.map((_, nth) => BigInt(nth)));
      }
    });

    test('redelivers records to a handler that rejected, and moves on only after it resolved', async () => {
      const topic = await newTopic(1);
      const group = randomUUID();
      await log.publish(topic, numbered(1));
      const attempts: string[][] = [];
      const errors: unknown[] = [];
      const subscription = log.consume({
        topic,
        group,
        onError: (error) => errors.push(error),
        async handle(records) {
          attempts.push(records.map(text));
          if (attempts.length < 3) throw new Error('not yet');
        },
      });
      await vi.waitFor(() => expect(attempts).toEqual([['0'], ['0'], ['0']]), EVENTUALLY);
      await subscription.stop();
      expect(errors).toEqual([new Error('not yet'), new Error('not yet')]);

      await log.publish(topic, [{ key: '0', value: Buffer.from('next') }]);
      const later = collect(log, { topic, group });
      await vi.waitFor(() => expect(later).toEqual(['next']), EVENTUALLY);
    });

    test('says where records were read, and reads earlier ones again for a handler that needs them', async () => {
      const topic = await newTopic(1);
      const group = randomUUID();
      await log.publish(topic, numbered(10));
      const read: [from: number, ...values: string[]][] = [];
      const errors: unknown[] = [];
      const topicIds = new Set<string>();
      let next = 0n;
      const consume = () =>
        log.consume({
          topic,
          group,
          maxRecords: 4,
          onError: (error) => errors.push(error),
          async handle(records, from, topicId) {
            topicIds.add(topicId);
            read.push([Number(from), ...records.map(text)]);
            if (from > next) throw new ReadAgain(next);
            next = from + BigInt(records.length);
          },
        });
      const first = consume();
      const whole = [
        [0, '0', '1', '2', '3'],
        [4, '4', '5', '6', '7'],
        [8, '8', '9'],
      ];
      await vi.waitFor(() => expect(read).toEqual(whole), EVENTUALLY);
      await first.stop();
      read.splice(0);
      await log.publish(topic, [{ key: '0', value: Buffer.from('next') }]);
      next = 2n;
      const again = consume();
      onTestFinished(again.stop);
      const rest = [
        [10, 'next'],
        [2, '2', '3', '4', '5'],
        [6, '6', '7', '8', '9'],
        [10, 'next'],
      ];
      await vi.waitFor(() => expect(read).toEqual(rest), EVENTUALLY);
      expect(errors).toEqual([]);
      expect([...topicIds]).toEqual([await log.identity(topic)]);
    });

    test('a partition whose handler rejects does not block the others', async () => {
      const topic = await newTopic(4);
      await log.publish(topic, numbered(40));
      const all = watch(topic);
      const received = new Set<string>();
      const subscription = log.consume({
        topic,
        group: randomUUID(),
        async handle(records) {
          if (records[0]?.partition === 0) throw new Error('never');
          for (const { key } of records) received.add(key);
        },
      });
      onTestFinished(subscription.stop);
      await vi.waitFor(() => expect(all).toHaveLength(40), EVENTUALLY);
      const others = all.filter(({ partition }) => partition !== 0).map(({ key }) => key);
      expect(others.length).toBeLessThan(40);
      await vi.waitFor(() => expect(received).toEqual(new Set(others)), EVENTUALLY);
    });

    test('the members of a group share its records, and one takes over when another leaves', async () => {
      const topic = await newTopic();
      const group = randomUUID();
      const first = collect(open(), { topic, group });
      const secondValues: string[] = [];
      const second = open().consume({
        topic,
        group,
        handle: async (records) => void secondValues.push(...records.map(text)),
      });
      let published = 0;
      const publish = async () => {
        await log.publish(topic, [{ key: `${published}`, value: Buffer.from(`${published++}`) }]);
      };
      await vi.waitFor(async () => {
        await publish();
        expect(Math.min(first.length, secondValues.length)).toBeGreaterThan(0);
      }, EVENTUALLY);
      await second.stop();
      for (let more = 0; more < 20; more++) await publish();
      await vi.waitFor(() => expect(new Set([...first, ...secondValues]).size).toBe(published), EVENTUALLY);
    });

    test('a member takes over the records that another process was handling when it was killed', async () => {
      const topic = await newTopic();
      const group = randomUUID();
      await log.publish(topic, numbered(40));
      const options: MemberOptions = { ...harness().options, topic, group };
      const killed = fork(join(import.meta.dirname, 'member.fixture.ts'), [JSON.stringify(options)], { execArgv: [] });
      onTestFinished(() => void killed.kill('SIGKILL'));
      await once(killed, 'message');
      const survivor = collect(log, { topic, group });
      killed.kill('SIGKILL');
      await vi.waitFor(() => expect(new Set(survivor).size).toBe(40), EVENTUALLY);
    });

    test('a follower receives everything from its positions on', async () => {
      const topic = await newTopic(1);
      await log.publish(topic, numbered(10));
      const ends = await log.ends(topic);
      expect(ends).toEqual(new Map([[0, 10n]]));
      await log.publish(topic, numbered(5));
      const received = watch(topic, ends);
      await vi.waitFor(() => expect(received).toHaveLength(5), EVENTUALLY);
      await log.publish(topic, numbered(5));
      await vi.waitFor(() => expect(received).toHaveLength(10), EVENTUALLY);
      expect(received.map(({ offset }) => offset)).toEqual(Array.from({ length: 10 }, (_, nth) => BigInt(10 + nth)));
    });

    test('a follower whose position is beyond the end starts at the oldest record', async () => {
      const topic = await newTopic(1);
      await log.publish(topic, numbered(3));
      const received = watch(topic, new Map([[0, 1_000n]]));
      await vi.waitFor(() => expect(received.map(text)).toEqual(['0', '1', '2']), EVENTUALLY);
    });

    test('a follower whose handler rejected receives the same records again', async () => {
      const topic = await newTopic(1);
      await log.publish(topic, numbered(3));
      const attempts: string[][] = [];
      const { stop } = log.follow({
        topic,
        from: new Map(),
        handle(records) {
          attempts.push(records.map(text));
          if (attempts.length === 1) throw new Error('not yet');
        },
      });
      onTestFinished(stop);
      await vi.waitFor(() => expect(attempts).toHaveLength(2), EVENTUALLY);
      expect(attempts[1]).toEqual(attempts[0]);
    });

    test('a compacted topic delivers the newest record of every key last', async () => {
      const topic = await newTopic(4, 'compact');
      for (const version of ['1', '2', '3']) {
        await log.publish(
          topic,
          ['a', 'b', 'c'].map((key) => ({ key, value: Buffer.from(version) })),
        );
      }
      const received = watch(topic);
      const newest = () => Object.fromEntries(received.map((record) => [record.key, text(record)]));
      await vi.waitFor(() => expect(newest()).toEqual({ a: '3', b: '3', c: '3' }), EVENTUALLY);
    });

    test('stopping waits for the current batch and commits it', async () => {
      const topic = await newTopic(1);
      const group = randomUUID();
      await log.publish(topic, numbered(1));
      const started = Promise.withResolvers<void>();
      const release = Promise.withResolvers<void>();
      let finished = false;
      const subscription = log.consume({
        topic,
        group,
        async handle() {
          started.resolve();
          await release.promise;
          finished = true;
        },
      });
      await started.promise;
      const stopped = subscription.stop();
      setTimeout(release.resolve, 100);
      await stopped;
      expect(finished).toBe(true);

      await log.publish(topic, [{ key: '0', value: Buffer.from('next') }]);
      const later = collect(log, { topic, group });
      await vi.waitFor(() => expect(later).toEqual(['next']), EVENTUALLY);
    });

    test('topics are created once, and one that does not fit is rejected by name', async () => {
      const fits: Topic = { name: `test.${randomUUID()}`, partitions: 2, retention: HOUR_MS };
      await Promise.all([log.ensureTopics([fits]), open().ensureTopics([fits])]);
      await log.ensureTopics([fits]);
      expect((await log.ends(fits.name)).size).toBe(2);
      await expect(log.ensureTopics([{ ...fits, retention: 'compact' }])).rejects.toThrow(fits.name);
    });

    test('reports the names of missing topics before it creates them, and no others', async () => {
      const existing: Topic = { name: await newTopic(), partitions: 4, retention: HOUR_MS };
      const missing: Topic = { name: `test.${randomUUID()}`, partitions: 1, retention: 'compact' };
      const created: string[] = [];
      const creating = async (names: readonly string[]) => {
        await expect(log.publish(missing.name, numbered(1))).rejects.toThrow();
        created.push(...names);
      };
      await log.ensureTopics([existing, missing], creating);
      await log.ensureTopics([existing, missing], creating);
      expect(created).toEqual([missing.name]);
    });

    test('finds the offsets of a time, and can be read from there to its end', async () => {
      const topic = await newTopic(2);
      await log.publish(topic, numbered(20));
      await sleep(50);
      const moment = Date.now();
      await sleep(50);
      await log.publish(topic, [{ key: 'a', value: Buffer.from('late') }]);
      const [ends, from] = [await log.ends(topic), await log.since(topic, moment)];
      expect([...ends].map(([partition, end]) => end - (from.get(partition) ?? 0n)).sort()).toEqual([0n, 1n]);
      const read: string[] = [];
      const { signal } = new AbortController();
      await readTopic(log, { topic, from, ends, signal }, async (records) => void read.push(...records.map(text)));
      expect(read).toEqual(['late']);
      await readTopic(log, { topic, from: new Map(), ends, signal }, async (records) => {
        read.push(...records.map(text));
      });
      expect(read).toHaveLength(22);
      // Nothing was appended since now.
      expect(await log.since(topic, Date.now() + HOUR_MS)).toEqual(ends);
      await readTopic(log, { topic, from: ends, ends, signal }, async () => expect.unreachable());
    });

    test('rejects publishing to a topic that does not exist', async () => {
      await expect(log.publish(`test.${randomUUID()}`, numbered(1))).rejects.toThrow();
    });

    test.skipIf(harness().restart === undefined)(
      'loses nothing when the server is restarted while records are published and read',
      async () => {
        const topic = await newTopic();
        const received = collect(log, { topic, group: randomUUID() });
        const followed = watch(topic);
        const restarted = harness().restart?.();
        let going = true;
        const ended = restarted?.finally(() => {
          going = false;
        });
        let published = 0;
        while (going) {
          const records: NewRecord[] = [{ key: `${published}`, value: Buffer.from(`${published}`) }];
          // As every publisher does: retry until the log acknowledges.
          while (!(await accepted(log, topic, records)));
          published++;
        }
        await ended;
        while (!(await accepted(log, topic, [{ key: 'last', value: Buffer.from('last') }])));
        await vi.waitFor(() => expect(new Set(received).size).toBe(published + 1), EVENTUALLY);
        await vi.waitFor(() => expect(new Set(followed.map(text)).size).toBe(published + 1), EVENTUALLY);
        await log.check();
      },
      60_000,
    );
  });
}

/** Records with cycling keys, whose values number them. */
function numbered(count: number, keys = count, more = ''): NewRecord[] {
  return Array.from({ length: count }, (_, nth) => ({ key: `${nth % keys}`, value: Buffer.from(`${nth}${more}`) }));
}

function text({ value }: LogRecord): string {
  return Buffer.from(value ?? []).toString();
}

function accepted(log: Log, topic: string, records: readonly NewRecord[]): Promise<boolean> {
  return log.publish(topic, records).then(
    () => true,
    () => false,
  );
}
