import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { type BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { failure } from '../../common/contract/errors.ts';
import { MAX_BATCH_ROWS } from '../../common/contract/limits.ts';

/** What a message may still hold. An object is made of every field: an empty one takes two bytes and becomes 95. */
export class Budget {
  readonly #values: number;
  #valuesLeft: number;
  #rowsLeft = MAX_BATCH_ROWS;

  constructor(values: number) {
    this.#values = values;
    this.#valuesLeft = values;
  }

  takeValues(values: number): void {
    this.#valuesLeft -= values;
    if (this.#valuesLeft >= 0) return;
    throw failure('INVALID_FIELD', `The message holds more than ${this.#values} values.`);
  }

  /** Rows of a batch, and elements of any other list of messages: no request has a longer one. */
  takeRows(rows: number): void {
    this.#rowsLeft -= rows;
    if (this.#rowsLeft >= 0) return;
    throw failure('TOO_MANY_ROWS', `A message may hold at most ${MAX_BATCH_ROWS} rows; split it.`);
  }
}

/** How a field is encoded. */
interface Encoding {
  readonly wireType: WireType;
  /** Whether it may also be a length and numbers. */
  readonly packable: boolean;
  readonly list: boolean;
  readonly message: DescMessage | undefined;
}

const encodings = new WeakMap<DescMessage, ReadonlyMap<number, Encoding>>();

/**
 * Passes over the next field of a message and all that is in it, and takes what it holds from the budget. Throws when
 * the field is not encoded as its type demands: the decoder reads it by its type alone, and would find other fields
 * behind it than those that were counted.
 */
export function countNextField(schema: DescMessage, reader: BinaryReader, budget: Budget): void {
  countField(encodingsOf(schema), reader, budget, true);
}

function countField(
  fields: ReadonlyMap<number, Encoding>,
  reader: BinaryReader,
  budget: Budget,
  outermost: boolean,
): void {
  const [number, wireType] = reader.tag();
  budget.takeValues(1);
  const field = fields.get(number);
  if (!field) {
    reader.skip(wireType, number);
    return;
  }
  const packed = field.packable && wireType === WireType.LengthDelimited;
  if (wireType !== field.wireType && !packed) throw new RangeError('the wire type is not that of the field');
  if (!field.message && !packed) {
    reader.skip(wireType, number);
    return;
  }
  const length = reader.uint32();
  const end = reader.pos + length;
  if (end > reader.len) throw new RangeError('premature EOF');
  if (packed) {
    budget.takeValues(length);
    reader.pos = end;
    return;
  }
  if (outermost && field.list) budget.takeRows(1);
  const inner = encodingsOf(field.message as DescMessage);
  while (reader.pos < end) countField(inner, reader, budget, false);
  if (reader.pos !== end) throw new RangeError('a field reaches beyond its message');
}

function encodingsOf(schema: DescMessage): ReadonlyMap<number, Encoding> {
  const known = encodings.get(schema);
  if (known) return known;
  const read = new Map(schema.fields.map((field) => [field.number, encodingOf(field)]));
  encodings.set(schema, read);
  return read;
}

function encodingOf(field: DescField): Encoding {
  const wireType = wireTypeOf(field);
  const list = field.fieldKind === 'list';
  // What a map holds is not counted, because no request has one.
  const message = field.fieldKind === 'map' ? undefined : field.message;
  return { wireType, list, packable: list && wireType !== WireType.LengthDelimited, message };
}

function wireTypeOf({ fieldKind, scalar, enum: values }: DescField): WireType {
  if (values && fieldKind !== 'map') return WireType.Varint;
  if (fieldKind === 'map') return WireType.LengthDelimited;
  switch (scalar) {
    case undefined:
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return WireType.LengthDelimited;
    case ScalarType.DOUBLE:
    case ScalarType.FIXED64:
    case ScalarType.SFIXED64:
      return WireType.Bit64;
    case ScalarType.FLOAT:
    case ScalarType.FIXED32:
    case ScalarType.SFIXED32:
      return WireType.Bit32;
    default:
      return WireType.Varint;
  }
}

const [QUOTE, BACKSLASH, COMMA, BRACKET, BRACE] = [0x22, 0x5c, 0x2c, 0x5b, 0x7b];

/** Takes at least as many values from the budget as a JSON text holds: before it is parsed, and much faster. */
export function countJson(bytes: Uint8Array, budget: Budget): void {
  let values = 1;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      for (at++; at < bytes.length && bytes[at] !== QUOTE; at++) if (bytes[at] === BACKSLASH) at++;
    } else if (byte === COMMA || byte === BRACKET || byte === BRACE) values++;
  }
  budget.takeValues(values);
}
