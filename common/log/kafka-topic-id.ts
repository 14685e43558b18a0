import type { Cluster } from './kafkajs-cluster.ts';

/** Kafka's number of the request, and the first version of it that tells ids of topics. */
const METADATA = { apiKey: 3, apiVersion: 10, apiName: 'Metadata' };

/**
 * The id that Kafka gave to a topic when it was created; rejects when there is no such topic. kafkajs asks for metadata
 * in version 6 at most, which has no ids, so this is a request of its own over a connection of kafkajs's.
 */
export async function kafkaTopicId(cluster: Cluster, topic: string): Promise<string> {
  await cluster.brokerPool.refreshMetadataIfNecessary([]);
  const broker = await cluster.brokerPool.findConnectedBroker();
  const buffer = requestFor(topic);
  return broker.connectionPool.send({
    request: { ...METADATA, encode: async () => ({ buf: buffer, buffer }) },
    response: { decode: async (payload) => payload, parse: async (payload) => idIn(payload, topic) },
  });
}

/**
 * MetadataRequest version 10 of Kafka's protocol guide. It is "flexible": a length is one more than it is, as an unsigned
 * varint, and every part ends with its tagged fields, here none. The first of those are the header's, which kafkajs
 * writes as it was before.
 */
function requestFor(topic: string): Buffer {
  const name = Buffer.from(topic);
  return Buffer.concat([
    Buffer.from([0]), // Tagged fields of the header.
    Buffer.from([2]), // One topic:
    Buffer.alloc(16), // its id, which is unknown,
    varint(name.length + 1),
    name,
    Buffer.from([0]), // and its tagged fields.
    Buffer.from([0, 0, 0]), // Creates no topic, tells no authorized operations of cluster and topics.
    Buffer.from([0]), // Tagged fields.
  ]);
}

/** Reads the first topic of a MetadataResponse version 10. */
function idIn(payload: Buffer, topic: string): string {
  let at = 0;
  const length = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = payload.readUInt8(at++);
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return Math.max(0, value - 1);
    }
  };
  const skipText = () => {
    const bytes = length();
    at += bytes;
  };
  at += 1 + 4; // Tagged fields of the header, throttle time.
  for (let brokers = length(); brokers > 0; brokers--) {
    at += 4; // Node.
    skipText(); // Host.
    at += 4; // Port.
    skipText(); // Rack.
    at += 1; // Tagged fields.
  }
  skipText(); // Cluster.
  at += 4; // Controller.
  length(); // Topics.
  const error = payload.readInt16BE(at);
  if (error !== 0) throw new Error(`Kafka tells no id of topic ${topic} (error ${error})`);
  at += 2;
  skipText(); // Name.
  return payload.toString('hex', at, at + 16);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = value;
  for (; left >= 0x80; left >>>= 7) bytes.push((left & 0x7f) | 0x80);
  return Buffer.from([...bytes, left]);
}
