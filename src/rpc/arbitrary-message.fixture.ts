import { type DescField, type DescMessage, type JsonValue, ScalarType } from '@bufbuild/protobuf';
import fc, { type Arbitrary } from 'fast-check';

const AWKWARD = [
  ...['', ' ', '\0', 'a\0b', 'none', 'NONE', '__proto__', 'constructor', '%00', "'; drop table codes; --", '\u202e'],
  ...['x'.repeat(255), 'x'.repeat(3_000), '💥', '\\', '\r\nx: y', '-1', 'Infinity', '1e9', 'null', '\ufffe'],
  ...['https://example.com/', 'http://[::1]:1/', 'https://10.0.0.1/', 'menu.example.com', 'a@example.com', '#12345g'],
  ...['qr.created', 'png', 'target_url', 'signpost.codes.v1.CodesService/CreateCode', 'INVALID_FIELD', 'qr_'],
];
const ID = fc
  .tuple(
    fc.constantFrom('qr', 'batch', 'folder', 'tag', 'domain', 'acct', 'hook', 'dlv', 'mbr', 'evt', 'key'),
    fc.constantFrom('0'.repeat(26), `7${'z'.repeat(25)}`, '01kagcpn9te5gvjxq1rmm30w4h', 'x'),
  )
  .map(([prefix, rest]) => `${prefix}_${rest}`);

const [INT32, INT64] = [2 ** 31, 2n ** 63n];
const int = fc.oneof(fc.integer({ min: -2, max: 120 }), fc.constantFrom(-INT32, INT32 - 1, 25_001, 1_000_000));
const long = fc
  .oneof(fc.bigInt({ min: -2n, max: 120n }), fc.constantFrom(-INT64, INT64 - 1n, 2n ** 53n, 10n ** 15n))
  .map(String);

/** Well-known types in protobuf's JSON form: typical and extreme values. */
const SPECIAL: Readonly<Record<string, Arbitrary<JsonValue>>> = {
  'google.protobuf.Timestamp': fc.oneof(
    fc.integer({ min: Date.UTC(2026, 9, 1), max: Date.UTC(2026, 11, 1) }).map((ms) => new Date(ms).toISOString()),
    fc.constantFrom('0001-01-01T00:00:00Z', '1969-12-31T23:59:59.999999999Z', '9999-12-31T23:59:59.999999999Z'),
    fc.constantFrom('1970-01-01T00:00:00Z', '2020-02-29T12:30:00.000000001Z', '2500-01-01T00:00:00Z'),
  ),
  'google.protobuf.FieldMask': fc
    .array(fc.constantFrom('name', 'paused', 'targetUrl', 'folder', 'tags', 'landingPage', 'id', 'none'), {
      maxLength: 4,
    })
    .map((paths) => paths.join(',')),
};

/**
 * Messages of a type in protobuf's JSON form: well typed, but otherwise arbitrary. `known`: existing ids, tried in
 * every string.
 */
export function messageOf(desc: DescMessage, known: readonly string[], depth = 0): Arbitrary<JsonValue> {
  const special = SPECIAL[desc.typeName];
  if (special) return special;
  if (depth > 4) return fc.constant({});
  const text = fc.oneof(
    { arbitrary: fc.constantFrom('', ...known), weight: 4 },
    { arbitrary: fc.constantFrom(...AWKWARD), weight: 2 },
    { arbitrary: fc.string({ unit: 'grapheme', maxLength: 30 }), weight: 1 },
    { arbitrary: ID, weight: 1 },
  );
  const one = (field: Pick<DescField, 'scalar' | 'enum' | 'message'>): Arbitrary<JsonValue> => {
    if (field.message) return messageOf(field.message, known, depth + 1);
    // Includes undefined enum numbers.
    if (field.enum) return fc.oneof(fc.integer({ min: 0, max: 5 }), fc.constantFrom(-1, 99, INT32 - 1));
    switch (field.scalar) {
      case ScalarType.STRING:
        return text;
      case ScalarType.BOOL:
        return fc.boolean();
      case ScalarType.BYTES:
        return fc.base64String({ maxLength: 40 });
      case ScalarType.INT32:
        return int;
      case ScalarType.INT64:
        return long;
      case ScalarType.UINT64:
        return fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String);
      default:
        throw new Error(`no arbitrary for the scalar ${field.scalar} of ${desc.typeName}`);
    }
  };
  const filled = (field: DescField): Arbitrary<JsonValue> => {
    const value = one(field as never);
    if (field.fieldKind === 'list') return fc.array(value, { maxLength: 25, size: 'small' });
    // All keys of maps are strings.
    if (field.fieldKind === 'map') return fc.dictionary(text, value, { maxKeys: 25, size: 'small' });
    return value;
  };
  const members = desc.members.map((member) => {
    const fields = member.kind === 'oneof' ? member.fields : [member];
    return fc.option(fc.oneof(...fields.map((field) => filled(field).map((value) => ({ [field.jsonName]: value })))), {
      freq: 4,
      nil: {},
    });
  });
  return fc.tuple(...members).map((parts) => Object.assign({}, ...parts) as JsonValue);
}
