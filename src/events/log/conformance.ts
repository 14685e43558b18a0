import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Log, LogRecord, NewRecord, Topic } from './log.ts';

/** What an implementation gives the suite: logs that stand for processes of their own. */
export interface Harness {
  open(): Log;
}

const EVENTUALLY = { timeout: 20_000, interval: 25 };

/** Everything that `Log` promises; every implementation has to pass it. */
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

    async function newTopic(retention: Topic['retention'] = 3_600_000, partitions = 4): Promise<string> {
      const topic = `test.${randomUUID()}`;
      await log.ensureTopics([{ name: topic, partitions, retention }]);
      return topic;
    }

    test('gives records back as they were published, headers and null values too', async () => {
      const topic = await newTopic();
      const sent: NewRecord[] = [
        { key: 'a', value: Buffer.from([0, 255, 7]), headers: { ce_type: 'x', 'content-type': 'application/json' } },
        { key: 'b', value: null },
        { key: 'schön', value: Buffer.alloc(0) },
      ];
      await log.publish(topic, sent);
      const got: LogRecord[] = [];
      const subscription = log.follow({ topic, from: new Map(), handle: (records) => void got.push(...records) });
      await vi.waitFor(() => expect(got).toHaveLength(3), EVENTUALLY);
      await subscription.stop();
      const byKey = new Map(got.map((record) => [record.key, record]));
      expect(byKey.get('a')?.value && [...(byKey.get('a')?.value ?? [])]).toEqual([0, 255, 7]);
      expect(byKey.get('a')?.headers).toEqual({ ce_type: 'x', 'content-type': 'application/json' });
      expect(byKey.get('b')?.value).toBeNull();
      expect(byKey.get('schön')?.value).toHaveLength(0);
    });

    test('keeps the order of each key over many calls, and gives a group every record of 20,000', async () => {
      const topic = await newTopic();
      for (let call = 0; call < 4; call++) {
        const records = Array.from({ length: 5_000 }, (_, nth) => ({
          key: `key ${nth % 50}`,
          value: Buffer.from(String(call * 5_000 + nth)),
        }));
        await log.publish(topic, records);
      }
      const seen = new Map<string, number[]>();
      let records = 0;
      const subscription = log.consume({
        topic,
        group: randomUUID(),
        maxRecords: 1_000,
        async handle(batch) {
          expect(batch.length).toBeLessThanOrEqual(1_000);
          for (const { key, value } of batch)
            seen.set(key, [...(seen.get(key) ?? []), Number(value?.toString() ?? Buffer.from(value ?? []).toString())]);
          records += batch.length;
        },
      });
      await vi.waitFor(() => expect(records).toBe(20_000), EVENTUALLY);
      await subscription.stop();
      expect(seen.size).toBe(50);
      for (const values of seen.values()) expect(values).toEqual(values.toSorted((one, other) => one - other));
    });

    test('gives the same records again to a handler that rejected, and moves on only after it resolved', async () => {
      const topic = await newTopic(3_600_000, 1);
      await log.publish(topic, [{ key: 'k', value: Buffer.from('1') }]);
      const group = randomUUID();
      const attempts: number[] = [];
      const errors: unknown[] = [];
      const subscription = log.consume({
        topic,
        group,
        onError: (error) => errors.push(error),
        async handle(records) {
          attempts.push(records.length);
          if (attempts.length < 3) throw new Error('not yet');
        },
      });
      await vi.waitFor(() => expect(attempts).toHaveLength(3), EVENTUALLY);
      await subscription.stop();
      expect(errors.length).toBeGreaterThanOrEqual(2);

      const later: string[] = [];
      await log.publish(topic, [{ key: 'k', value: Buffer.from('2') }]);
      const next = log.consume({
        topic,
        group,
        handle: async (records) => void later.push(...records.map(({ value }) => Buffer.from(value ?? []).toString())),
      });
      await vi.waitFor(() => expect(later).toEqual(['2']), EVENTUALLY);
      await next.stop();
    });

    test('two members of a group never lose a record between them, and one takes over when the other leaves', async () => {
      const topic = await newTopic();
      const group = randomUUID();
      const seen = new Set<string>();
      const handle = async (records: readonly LogRecord[]) => {
        for (const { value } of records) seen.add(Buffer.from(value ?? []).toString());
      };
      const publish = (from: number) =>
        log.publish(
          topic,
          Array.from({ length: 200 }, (_, nth) => ({ key: `${nth}`, value: Buffer.from(`${from + nth}`) })),
        );
      const other = open();
      const first = other.consume({ topic, group, handle });
      const second = log.consume({ topic, group, handle });
      await publish(0);
      await vi.waitFor(() => expect(seen.size).toBe(200), EVENTUALLY);
      await first.stop();
      await publish(200);
      await vi.waitFor(() => expect(seen.size).toBe(400), EVENTUALLY);
      await second.stop();
    });

    test('a follower sees everything from the positions that it names', async () => {
      const topic = await newTopic(3_600_000, 1);
      const publish = (from: number) =>
        log.publish(
          topic,
          Array.from({ length: 10 }, (_, nth) => ({ key: `${from + nth}`, value: Buffer.from('v') })),
        );
      await publish(0);
      const end = await log.ends(topic);
      expect(end.get(0)).toBe(10n);
      await publish(10);
      const keys: string[] = [];
      const subscription = log.follow({
        topic,
        from: end,
        handle: (records) => void keys.push(...records.map(({ key }) => key)),
      });
      await vi.waitFor(() => expect(keys.length).toBeGreaterThanOrEqual(10), EVENTUALLY);
      await publish(20);
      await vi.waitFor(() => expect(keys).toEqual(Array.from({ length: 20 }, (_, nth) => `${10 + nth}`)), EVENTUALLY);
      await subscription.stop();
    });

    test('a compacted topic keeps the newest record of every key', async () => {
      const topic = await newTopic('compact');
      for (let version = 1; version <= 3; version++) {
        const value = Buffer.from(String(version));
        await log.publish(
          topic,
          ['a', 'b', 'c'].map((key) => ({ key, value })),
        );
      }
      const newest = new Map<string, string>();
      const subscription = log.follow({
        topic,
        from: new Map(),
        handle(records) {
          for (const { key, value } of records) newest.set(key, Buffer.from(value ?? []).toString());
        },
      });
      await vi.waitFor(() => expect([...newest.values()]).toEqual(['3', '3', '3']), EVENTUALLY);
      await subscription.stop();
    });

    test('stopping waits for the batch in hand', async () => {
      const topic = await newTopic(3_600_000, 1);
      await log.publish(topic, [{ key: 'k', value: Buffer.from('v') }]);
      const started = Promise.withResolvers<void>();
      const release = Promise.withResolvers<void>();
      let finished = false;
      const subscription = log.consume({
        topic,
        group: randomUUID(),
        async handle() {
          started.resolve();
          await release.promise;
          finished = true;
        },
      });
      await started.promise;
      const stopped = subscription.stop();
      release.resolve();
      await stopped;
      expect(finished).toBe(true);
    });

    test('a topic that does not fit is refused by name', async () => {
      const topic = await newTopic(3_600_000);
      const ensured = log.ensureTopics([{ name: topic, partitions: 4, retention: 'compact' }]);
      await expect(ensured).rejects.toThrow(topic);
    });

    test('says that it answers', () => log.check());
  });
}
