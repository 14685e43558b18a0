import type { Kafka, Message } from 'kafkajs';
import { beforeEach, expect, test } from 'vitest';
import { openPublisher } from './kafka-publisher.ts';
import { type NewRecord, RecordsTooLarge } from './log.ts';

const RECORD_BYTES = 9_000;

/** The largest batch that a partition takes, in bytes; each key has a partition of its own. */
let max: number;
/** The keys of the records in each request, and whether it was acknowledged. */
let requests: { readonly keys: readonly string[]; readonly acknowledged: boolean }[];
/** The values of the appended records, in order. */
let appended: string[];
let failsAt: number;
let producers: number;
beforeEach(() => {
  [max, requests, appended, failsAt, producers] = [100_000, [], [], Number.POSITIVE_INFINITY, 0];
});

/** A producer of a topic that appends what it can of a request before it refuses the rest. */
const producer = {
  connect: async () => undefined,
  disconnect: async () => undefined,
  async send({ messages }: { messages: Message[] }) {
    if (requests.length === failsAt) throw new Error('away');
    const partitions = [...Map.groupBy(messages, ({ key }) => String(key)).values()];
    const taken = partitions.filter(
      (batch) => batch.reduce((sum, { value }) => sum + (value?.length ?? 0) + 40, 61) <= max,
    );
    appended.push(...taken.flat().map(nameOf));
    const acknowledged = taken.length === partitions.length;
    requests.push({ keys: messages.map(({ key }) => String(key)), acknowledged });
    if (!acknowledged) throw Object.assign(new Error('too large'), { type: 'MESSAGE_TOO_LARGE' });
  },
};

function open() {
  const newProducer = () => {
    producers++;
    return producer;
  };
  return openPublisher({ producer: newProducer } as unknown as Kafka);
}

/** The start of a value, which numbers it. */
function nameOf({ value }: Pick<Message | NewRecord, 'value'>): string {
  return Buffer.from(value ?? '')
    .toString('utf8', 0, 10)
    .trim();
}

/** Records of these keys by turns. */
function recordsOf(count: number, keys: readonly string[] = ['a'], bytes = RECORD_BYTES): NewRecord[] {
  return Array.from({ length: count }, (_, n) => ({
    key: keys[n % keys.length] ?? '',
    value: Buffer.from(String(n).padEnd(bytes)),
  }));
}

const numbers = (count: number) => Array.from({ length: count }, (_, n) => String(n));
const refused = () => requests.filter(({ acknowledged }) => !acknowledged).length;

test('a topic that refuses a whole request gets it in smaller ones, each record once, and so the next records', async () => {
  const publisher = open();
  await publisher.publish('t', recordsOf(250));
  expect(appended).toEqual(numbers(250));
  // 900, 450, 225 and 112 kB.
  expect(refused()).toBe(4);
  await publisher.publish('t', recordsOf(250));
  expect(appended).toEqual([...numbers(250), ...numbers(250)]);
  expect(refused()).toBe(4);
  // Of six records each.
  expect(requests.length - refused()).toBe(2 * Math.ceil(250 / 6));
  expect(producers).toBe(1);
  // Another topic is sent larger requests.
  max = 1_048_576;
  await publisher.publish('other', recordsOf(90));
  expect(requests.at(-1)?.keys).toHaveLength(90);
});

test('if one partition refuses a request, what was acknowledged is not sent again, and each key keeps its order', async () => {
  const records = recordsOf(300, ['a', 'a', 'a', 'b']);
  await open().publish('t', records);
  for (const key of ['a', 'b']) {
    const names = records.filter((record) => record.key === key).map(nameOf);
    expect([...new Set(appended)].filter((name) => names.includes(name))).toEqual(names);
  }
  expect(requests.filter(({ acknowledged }) => acknowledged).flatMap(({ keys }) => keys)).toHaveLength(300);
});

test('a record that is too large by itself is reported once those before it were appended', async () => {
  const [large] = recordsOf(1, ['a'], 200_000);
  const records = recordsOf(30);
  if (large) records[20] = large;
  const publisher = open();
  const failure = await publisher.publish('t', records).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(RecordsTooLarge);
  expect(failure).toMatchObject({ accepted: 20 });
  expect(appended).toEqual(numbers(20));
  expect(requests.at(-1)?.keys).toHaveLength(1);
  await publisher.publish('t', recordsOf(5));
  expect(appended).toEqual([...numbers(20), ...numbers(5)]);
});

test('a failure of a smaller request is a failure', async () => {
  failsAt = 6;
  const publisher = open();
  await expect(publisher.publish('t', recordsOf(100))).rejects.toThrow('away');
  expect(requests.length).toBe(6);
  failsAt = Number.POSITIVE_INFINITY;
  await publisher.publish('t', recordsOf(100));
  expect(producers).toBe(2);
  // The size that the topic accepts is still known.
  expect(refused()).toBe(4);
});
