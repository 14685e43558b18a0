import kafkajs, { type Kafka, type Message, type Producer } from 'kafkajs';
import { type Broker, withClusters } from './kafkajs-cluster.ts';
import { type NewRecord, type Publisher, RecordsTooLarge } from './log.ts';

/** Two attempts of five seconds: publishing fails within some ten seconds while the brokers are unavailable. */
export const RETRIES = { retries: 1, initialRetryTime: 200, maxRetryTime: 1_000 };

/**
 * The estimated maximum size of one request, in bytes. kafkajs makes one record batch of all records that a request has
 * for a partition, and brokers by default reject batches over 1 MiB.
 */
const REQUEST_BYTES = 900_000;
/** The maximum overhead of a record besides its key, value and headers, in bytes. */
const RECORD_OVERHEAD_BYTES = 40;

const PRODUCER = {
  allowAutoTopicCreation: false,
  // Assigns keys to partitions as Java's producers do.
  createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
};

/** What brokers answer if a record batch exceeds the topic's `max.message.bytes` or `segment.bytes`. */
const TOO_LARGE: readonly string[] = ['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE'];

/** A kafkajs producer, and how many calls are using it. */
interface Used {
  readonly producer: Producer;
  readonly connected: Promise<void>;
  calls: number;
}

/**
 * Opens a publisher that replaces its producer after each failure and leaves retries to its caller. kafkajs's own
 * second attempt skips brokers that answered the first one, including the records of partitions that such a broker has
 * become the leader of, and reports success. And while a broker hangs, kafkajs learns no new leaders: as long as one
 * hung (118 s), nothing arrived.
 */
export function openPublisher(kafka: Kafka): Publisher {
  let current: Used | undefined;
  // Kept as long as the publisher: each is about half of what its topic accepts, or more.
  const limits = new Map<string, number>();
  const open = (): Used => {
    const producer = kafka.producer({ ...PRODUCER, retry: { retries: 0 } });
    return { producer, connected: producer.connect(), calls: 0 };
  };
  return {
    async publish(topic, records) {
      current ??= open();
      const used = current;
      used.calls++;
      try {
        await used.connected;
        await send(used.producer, topic, records, limits);
      } catch (error) {
        if (current === used) current = undefined;
        throw error;
      } finally {
        used.calls--;
        if (current !== used && used.calls === 0) await used.producer.disconnect();
      }
    },
    close: async () => current?.producer.disconnect(),
  };
}

/**
 * Sends the records, in order. `limits`: how large a request to each topic may be, in bytes, if a topic has refused a
 * larger one. With them, the records of a refused request are sent in smaller ones. Those of other partitions than the
 * one that refused it may be appended twice.
 */
async function send(
  producer: Producer,
  topic: string,
  records: readonly NewRecord[],
  limits?: Map<string, number>,
): Promise<void> {
  for (let sent = 0; sent < records.length; ) {
    const limit = limits?.get(topic) ?? REQUEST_BYTES;
    const { messages, bytes } = nextRequest(records, sent, limit);
    try {
      await producer.send({ topic, messages, acks: -1 });
      sent += messages.length;
    } catch (error) {
      const { type, message } = error as { type?: string; message: string };
      if (type === undefined || !TOO_LARGE.includes(type)) throw error;
      if (!limits || messages.length === 1) throw new RecordsTooLarge(message, sent, error);
      // Another call may have found a lower limit meanwhile.
      limits.set(topic, Math.min(bytes / 2, limits.get(topic) ?? REQUEST_BYTES));
    }
  }
}

/** The transaction coordinator in kafkajs's `coordinatorType`. */
const TRANSACTION_COORDINATOR = 1;

/**
 * Opens the publisher of the current leader: see `Log.openFencedPublisher`. Brokers keep a number for each name, which
 * increases with each publisher that is opened and is sent with its records. A partition that has seen a number rejects
 * records with a lower one.
 *
 * The number is the producer epoch of a transactional id, used here without transactions: their markers would take up
 * offsets between the records. kafkajs requests an epoch only together with transactions, so the idempotent producer's
 * own InitProducerId request is sent to the name's coordinator instead. An epoch is valid for one publisher and until
 * its first failure: kafkajs would then reuse the sequence numbers of records that may have arrived for other records,
 * which brokers would drop as duplicates.
 */
export async function openFencedPublisher(kafka: Kafka, name: string): Promise<Publisher> {
  // kafkajs insists on a second attempt for idempotent producers.
  const retry = RETRIES;
  const producer = withTransactionalId(kafka, name).producer({
    ...PRODUCER,
    retry,
    idempotent: true,
    maxInFlightRequests: 1,
  });
  try {
    await producer.connect();
  } catch (error) {
    await producer.disconnect();
    throw error;
  }
  let failure: unknown;
  return {
    async publish(topic, records) {
      if (failure) throw failure;
      try {
        await send(producer, topic, records);
      } catch (error) {
        failure = error;
        throw error;
      }
    },
    close: () => producer.disconnect(),
  };
}

/**
 * The same client, whose idempotent producers obtain their epoch under a transactional id. Each attempt gets its own
 * broker objects: kafkajs skips brokers that answered a previous attempt, and with them the records of partitions that
 * such a broker has become the leader of.
 */
function withTransactionalId(kafka: Kafka, name: string): Kafka {
  return withClusters(kafka, (cluster) => {
    const findBroker = cluster.findBroker.bind(cluster);
    return Object.assign(cluster, {
      findBroker: async (of: { nodeId: string }) => Object.create(await findBroker(of)) as Broker,
      findControllerBroker: async () => {
        const coordinator = await cluster.findGroupCoordinator({
          groupId: name,
          coordinatorType: TRANSACTION_COORDINATOR,
        });
        return {
          initProducerId: ({ transactionTimeout }: { transactionTimeout: number }) =>
            coordinator.initProducerId({ transactionalId: name, transactionTimeout }),
        };
      },
    });
  });
}

/** The records from `start` on that fit into a request of `limit` bytes, but at least one, and their estimated size. */
function nextRequest(
  records: readonly NewRecord[],
  start: number,
  limit: number,
): { readonly messages: Message[]; readonly bytes: number } {
  const messages: Message[] = [];
  let bytes = 0;
  for (const { key, value, headers } of records.values().drop(start)) {
    let size = RECORD_OVERHEAD_BYTES + Buffer.byteLength(key) + (value?.length ?? 0);
    for (const header of Object.entries(headers ?? {}).flat()) size += 2 + Buffer.byteLength(header);
    if (messages.length > 0 && bytes + size > limit) break;
    messages.push({
      key,
      value: value && Buffer.from(value.buffer, value.byteOffset, value.byteLength),
      ...(headers ? { headers: { ...headers } } : {}),
    });
    bytes += size;
  }
  return { messages, bytes };
}
