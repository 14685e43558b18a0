import { setImmediate } from 'node:timers/promises';
import { create, type DescMessage, type MessageShape, mergeFromBinary } from '@bufbuild/protobuf';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import { failure } from '../contract/errors.ts';

/** So much is read in a millisecond or two. */
const PART_BYTES = 64 * 1024;

/**
 * Reads a message, a large one in parts between which others get a turn of the event loop: 25,000 rows in one go hold
 * everybody up for 20 to 60 ms. Fails with INVALID_FIELD when the bytes are no such message.
 */
export async function readMessage<Schema extends DescMessage>(
  schema: Schema,
  bytes: Uint8Array,
): Promise<MessageShape<Schema>> {
  const message = create(schema);
  try {
    for (const part of partsOf(bytes)) {
      mergeFromBinary(schema, message, part);
      if (bytes.length > PART_BYTES) await setImmediate();
    }
    return message;
  } catch {
    throw failure('INVALID_FIELD', `The message is no ${schema.typeName}.`);
  }
}

/** Whole fields together: a message is the merge of its parts. Source: Protocol Buffers, Encoding, "Last One Wins". */
function* partsOf(bytes: Uint8Array): Generator<Uint8Array> {
  let start = 0;
  const fields = new BinaryReader(bytes);
  while (bytes.length - start > PART_BYTES && fields.pos < fields.len) {
    const [number, wireType] = fields.tag();
    fields.skip(wireType, number);
    if (fields.pos - start < PART_BYTES) continue;
    yield bytes.subarray(start, fields.pos);
    start = fields.pos;
  }
  yield bytes.subarray(start);
}
