import { isUtf8 } from 'node:buffer';
import { setImmediate } from 'node:timers/promises';
import {
  create,
  type DescField,
  type DescMessage,
  fromJson,
  type JsonValue,
  type Message,
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

/** Rows in JSON are decoded for as long, in ms, before other calls have their turn. */
const PART_MS = 2;

/** Limits on reading a message. */
export interface ReadLimits {
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
  { values, signal }: ReadLimits,
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

/** Unknown fields are ignored, unlike unknown names of enum values. */
const JSON_OPTIONS = { ignoreUnknownFields: true };

/**
 * Decodes a message in protobuf's JSON form with the same limits, and its rows in parts; its error says what is wrong
 * where. 25,000 rows with policies in one go block the event loop for half a second.
 */
export async function readJsonMessage<Schema extends DescMessage>(
  schema: Schema,
  bytes: Uint8Array,
  { values, signal }: ReadLimits,
): Promise<MessageShape<Schema>> {
  const budget = new Budget(values);
  countJson(bytes, budget);
  if (bytes.length > PART_BYTES) await setImmediate();
  let json: JsonValue | undefined;
  try {
    // As in binary messages: a decoder would replace the bytes, and the caller would not notice.
    if (!isUtf8(bytes)) throw new Error('it is not valid UTF-8');
    json = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()) as JsonValue;
    const lists = takeLists(schema, json, budget);
    const message = fromJson(schema, json, JSON_OPTIONS);
    const problem = jsonProblem(schema, json);
    if (problem !== undefined) throw failure('INVALID_FIELD', problem);
    for (const [field, items] of lists) Reflect.set(message, field.localName, await readItems(field, items, signal));
    return message;
  } catch (error) {
    if (error instanceof ConnectError || signal?.aborted) throw error;
    const details = error instanceof Error ? error.message.slice(0, 200) : '';
    const problem = json === undefined ? undefined : typeProblem(schema, json, error);
    throw failure('INVALID_FIELD', problem ?? `The message is not a valid ${schema.typeName}: ${details}.`);
  }
}

type MessagesField = DescField & { readonly fieldKind: 'list'; readonly listKind: 'message' };

/** Replaces the lists of messages in `json` by empty ones, after subtracting them from the budget; returns them. */
function takeLists(schema: DescMessage, json: JsonValue, budget: Budget): [MessagesField, JsonValue[]][] {
  const taken: [MessagesField, JsonValue[]][] = [];
  for (const field of schema.fields) {
    if (field.fieldKind !== 'list' || field.listKind !== 'message' || !(json instanceof Object)) continue;
    for (const name of new Set([field.jsonName, field.name])) {
      const items: unknown = Reflect.get(json, name);
      if (!Array.isArray(items)) continue;
      budget.takeRows(items.length);
      Reflect.set(json, name, []);
      taken.push([field, items]);
    }
  }
  return taken;
}

/** Decodes the messages of a list, yielding to the event loop in between. */
async function readItems(field: MessagesField, items: readonly JsonValue[], signal?: AbortSignal): Promise<Message[]> {
  const read: Message[] = [];
  let began = performance.now();
  for (const [index, item] of items.entries()) {
    read.push(readItem(field, item, `${field.name}[${index}].`));
    if (performance.now() - began < PART_MS) continue;
    await setImmediate();
    signal?.throwIfAborted();
    began = performance.now();
  }
  return read;
}

/** `path`: of the item, with a dot. */
function readItem({ message: schema }: MessagesField, json: JsonValue, path: string): Message {
  let problem: string | undefined;
  try {
    const message = fromJson(schema, json, JSON_OPTIONS);
    problem = jsonProblem(schema, json, path);
    if (problem === undefined) return message;
  } catch (error) {
    problem = typeProblem(schema, json, error, path);
  }
  throw failure('INVALID_FIELD', problem ?? `${path.slice(0, -1)}: is not a valid ${schema.typeName}.`);
}
