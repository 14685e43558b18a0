import type { Cluster } from './kafkajs-cluster.ts';

/** The API key of Kafka's metadata request, and its first version with topic ids. */
const METADATA = { apiKey: 3, apiVersion: 10, apiName: 'Metadata' };

/** Error codes of the response. */
const [UNKNOWN_TOPIC, NOT_AUTHORIZED] = [3, 29];

/**
 * The id that Kafka assigned to a topic when it was created; rejects if there is no such topic. kafkajs supports
 * metadata requests up to version 6, which has no ids, so this builds its own request and sends it over a connection of
 * kafkajs.
 */
export async function kafkaTopicId(cluster: Cluster, topic: string): Promise<string> {
  // Finds the brokers. It also fails if the topic is missing, which the error below says better.
  await cluster.brokerPool.refreshMetadataIfNecessary([topic]).catch(() => undefined);
  const broker = await cluster.brokerPool.findConnectedBroker();
  const buffer = requestFor(topic);
  return broker.connectionPool.send({
    request: { ...METADATA, encode: async () => ({ buf: buffer, buffer }) },
    response: { decode: async (payload) => payload, parse: async (payload) => idIn(payload, topic) },
  });
}

/**
 * MetadataRequest version 10 of Kafka's protocol guide. It is "flexible": lengths are unsigned varints of length + 1,
 * and every structure ends with its tagged fields, here none. The first are those of the header, because kafkajs writes
 * the older header without them.
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
    Buffer.from([0, 0, 0]), // Don't create topics, don't include authorized operations of cluster and topics.
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
  if (error === UNKNOWN_TOPIC) throw new Error(`topic ${topic} does not exist`);
  if (error === NOT_AUTHORIZED) throw new Error(`a permission for topic ${topic} is missing`);
  if (error !== 0) throw new Error(`Kafka returned no id for topic ${topic} (error ${error})`);
  at += 2;
  skipText(); // Name.
  return payload.toString('hex', at, at + 16);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.from([...bytes, rest]);
}
