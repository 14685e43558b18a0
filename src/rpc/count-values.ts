import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { type BinaryReader, WireType } from '@bufbuild/protobuf/wire';
import { failure } from '../../common/contract/errors.ts';
import { MAX_ROWS } from '../../common/contract/limits.ts';

/** The remaining size of a message. Every field becomes an object: an empty one takes two bytes and becomes 95. */
export class Budget {
  readonly #values: number;
  #valuesLeft: number;
  #rowsLeft = MAX_ROWS;

  constructor(values: number) {
    this.#values = values;
    this.#valuesLeft = values;
  }

  takeValues(values: number): void {
    this.#valuesLeft -= values;
    if (this.#valuesLeft >= 0) return;
    throw failure('INVALID_FIELD', `The message contains more than ${this.#values} values.`);
  }

  /** Counts rows of a batch and elements of other lists of messages: no request may have a longer list. */
  takeRows(rows: number): void {
    this.#rowsLeft -= rows;
    if (this.#rowsLeft >= 0) return;
    throw failure('TOO_MANY_ROWS', `A message may contain at most ${MAX_ROWS} rows; split it.`);
  }
}

/** How a field is encoded. */
interface Encoding {
  readonly wireType: WireType;
  /** Whether it may also be encoded packed, as a length and numbers. */
  readonly packable: boolean;
  readonly list: boolean;
  readonly message: DescMessage | undefined;
}

const encodings = new WeakMap<DescMessage, ReadonlyMap<number, Encoding>>();

/**
 * Skips the next field of a message with everything in it, and subtracts its values from the budget. Throws when the
 * wire type does not match the field's type: the decoder goes by the type alone and would then read other fields than
 * those counted here.
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
  if (wireType !== field.wireType && !packed) throw new RangeError('the wire type does not match the field');
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
  if (reader.pos !== end) throw new RangeError('a field extends beyond its message');
}

function encodingsOf(schema: DescMessage): ReadonlyMap<number, Encoding> {
  const cached = encodings.get(schema);
  if (cached) return cached;
  const fields = new Map(schema.fields.map((field) => [field.number, encodingOf(field)]));
  encodings.set(schema, fields);
  return fields;
}

function encodingOf(field: DescField): Encoding {
  const wireType = wireTypeOf(field);
  const list = field.fieldKind === 'list';
  // An entry of a map counts as one value: its key and its value are scalars in every request, and take no objects.
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

/** Subtracts an upper bound of the number of values in a JSON text, before and much faster than parsing it. */
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
