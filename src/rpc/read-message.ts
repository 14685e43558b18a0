import { isUtf8 } from 'node:buffer';
import { setImmediate } from 'node:timers/promises';
import {
  create,
  type DescMessage,
  fromJson,
  type JsonValue,
  type MessageShape,
  mergeFromBinary,
} from '@bufbuild/protobuf';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import { ConnectError } from '@connectrpc/connect';
import { failure } from '../../common/contract/errors.ts';
import { Budget, countJson, countNextField } from './count-values.ts';
import { jsonProblem, typeProblem } from './json-problem.ts';

/** Decoding this much takes one or two milliseconds. */
const PART_BYTES = 64 * 1024;

/** Limits on reading a message. */
export interface Reading {
  /** Maximum fields of a binary message, or values of a JSON one. */
  readonly values: number;
  /** Aborted when the caller no longer waits: the rest is then not read. */
  readonly signal?: AbortSignal;
}

/**
 * Decodes a binary message, a large one in parts, yielding to the event loop in between: 25,000 rows in one go block it
 * for 20 to 60 ms. Fields are counted before anything is created. Fails with INVALID_FIELD when the bytes are not such
 * a message or have too many values, and with TOO_MANY_ROWS when a list of messages is too long.
 */
export async function readMessage<Schema extends DescMessage>(
  schema: Schema,
  bytes: Uint8Array,
  { values, signal }: Reading,
): Promise<MessageShape<Schema>> {
  const message = create(schema);
  const budget = new Budget(values);
  try {
    for (const part of partsOf(schema, bytes, budget)) {
      signal?.throwIfAborted();
      mergeFromBinary(schema, message, part);
      if (bytes.length > PART_BYTES) await setImmediate();
    }
    return message;
  } catch (error) {
    if (error instanceof ConnectError || signal?.aborted) throw error;
    throw failure('INVALID_FIELD', `The message is not a valid ${schema.typeName}.`);
  }
}

/**
 * Splits at field boundaries: a message is the merge of its parts. Source: Protocol Buffers, Encoding, "Last One Wins".
 */
function* partsOf(schema: DescMessage, bytes: Uint8Array, budget: Budget): Generator<Uint8Array> {
  let start = 0;
  const fields = new BinaryReader(bytes);
  while (fields.pos < fields.len) {
    countNextField(schema, fields, budget);
    if (fields.pos - start < PART_BYTES) continue;
    yield bytes.subarray(start, fields.pos);
    start = fields.pos;
  }
  yield bytes.subarray(start);
}

/**
 * Decodes a message in protobuf's JSON form with the same limits; its error says what is wrong where. Unknown fields
 * are ignored, unlike unknown names of enum values.
 */
export function readJsonMessage<Schema extends DescMessage>(
  schema: Schema,
  bytes: Uint8Array,
  { values }: Reading,
): MessageShape<Schema> {
  const budget = new Budget(values);
  countJson(bytes, budget);
  let json: JsonValue | undefined;
  try {
    // As in binary messages: a decoder would replace the bytes, and the caller would not notice.
    if (!isUtf8(bytes)) throw new Error('it is not valid UTF-8');
    json = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()) as JsonValue;
    for (const { fieldKind, jsonName, name, message } of schema.fields) {
      if (fieldKind !== 'list' || !message || !(json instanceof Object)) continue;
      for (const list of new Set([Reflect.get(json, jsonName), Reflect.get(json, name)])) {
        if (Array.isArray(list)) budget.takeRows(list.length);
      }
    }
    const message = fromJson(schema, json, { ignoreUnknownFields: true });
    const problem = jsonProblem(schema, json);
    if (problem !== undefined) throw failure('INVALID_FIELD', problem);
    return message;
  } catch (error) {
    if (error instanceof ConnectError) throw error;
    const details = error instanceof Error ? error.message.slice(0, 200) : '';
    const problem = json === undefined ? undefined : typeProblem(schema, json, error);
    throw failure('INVALID_FIELD', problem ?? `The message is not a valid ${schema.typeName}: ${details}.`);
  }
}
