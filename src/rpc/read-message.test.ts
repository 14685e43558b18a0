import { create, type DescMessage, toBinary, toJsonString } from '@bufbuild/protobuf';
import type { ConnectError } from '@connectrpc/connect';
import { expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { BadRequestSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { CreateBatchRequestSchema } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { ListCodesRequestSchema } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import {
  ChangeTargetsRequestSchema,
  GetTargetAtRequestSchema,
} from '../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { readJsonMessage, readMessage } from './read-message.ts';

const request = create(CreateBatchRequestSchema, {
  name: 'Tables',
  rows: Array.from({ length: 25_000 }, (_, n) => ({ targetUrl: `https://example.com/${n}`, tags: ['a', `b${n}`] })),
  design: { foregroundColor: '#123456' },
});
const bytes = toBinary(CreateBatchRequestSchema, request);
const MANY = { values: 200_000 };

test.each([
  ['binary', bytes, readMessage],
  ['JSON', Buffer.from(toJsonString(CreateBatchRequestSchema, request)), readJsonMessage],
])('a large %s message is decoded completely, without blocking the event loop', async (_, bytes, read) => {
  let immediates = 0;
  const again = () => {
    immediates += 1;
    immediate = setImmediate(again);
  };
  let immediate = setImmediate(again);
  expect(await read(CreateBatchRequestSchema, bytes, MANY)).toEqual(request);
  clearImmediate(immediate);
  expect(immediates).toBeGreaterThan(7);
});

test.each([0, 1, 10, 1_000])('a message of %i rows is decoded unchanged', async (rows) => {
  const some = create(CreateBatchRequestSchema, { name: 'Tables', rows: request.rows.slice(0, rows) });
  expect(await readMessage(CreateBatchRequestSchema, toBinary(CreateBatchRequestSchema, some), MANY)).toEqual(some);
});

test.each([
  ['in its first field', Uint8Array.of(0xff, 0xff)],
  ['behind 100,000 bytes', Uint8Array.of(...bytes.subarray(0, 100_000), 0xff)],
  ['by its end', bytes.subarray(0, -1)],
])('a message broken %s is rejected with a sentence', async (_, broken) => {
  const failed = await readMessage(CreateBatchRequestSchema, broken, MANY).then(() => undefined, readFailure);
  expect(failed).toMatchObject({
    reason: 'INVALID_FIELD',
    message: 'The message is not a valid signpost.batches.v1.CreateBatchRequest.',
  });
});

const EMPTY_ROW = [0x0a, 0];
const EMPTY_TAG = [0x2a, 0];
const repeated = (field: readonly number[], times: number) => Uint8Array.from(Array(times).fill(field).flat());
/** A length-delimited field with this number and content. */
const field = (number: number, content: Uint8Array) =>
  Uint8Array.of(
    (number << 3) | 2,
    0x80 | (content.length & 0x7f),
    0x80 | ((content.length >> 7) & 0x7f),
    content.length >> 14,
    ...content,
  );

test.each([
  ['rows', repeated(EMPTY_ROW, 25_001), 'TOO_MANY_ROWS', 'A message may contain at most 25000 rows; split it.'],
  [
    'values in a row',
    field(1, repeated(EMPTY_TAG, 1_000)),
    'INVALID_FIELD',
    'The message contains more than 1000 values.',
  ],
  ['unknown fields', repeated([0x78, 0], 1_001), 'INVALID_FIELD', 'The message contains more than 1000 values.'],
])('a message with too many %s is rejected', async (_, bytes, reason, message) => {
  const values = reason === 'TOO_MANY_ROWS' ? 100_000 : 1_000;
  const failed = await readMessage(CreateBatchRequestSchema, bytes, { values }).then(() => undefined, readFailure);
  expect(failed).toMatchObject({ reason, message });
});

// The decoder reads fields by their type alone: it would take these for the length of a name, a number, and a row.
test.each([
  ['a text as a number', [0x10, 1, 0x0a, 0]],
  ['a row as a number', [0x08, 2, 0x2a, 0]],
  ['a row as four bytes', [0x0d, 2, 0x2a, 0, 0]],
  ['a row as a group', [0x0b, 0x2a, 0, 0x0c]],
])('a field encoded as another type, which would not be counted, is rejected: %s', async (_, bytes) => {
  const read = readMessage(CreateBatchRequestSchema, Uint8Array.from(bytes), MANY);
  expect(await read.then(() => undefined, readFailure)).toMatchObject({ reason: 'INVALID_FIELD' });
});

test('decoding stops when the caller has disconnected', async () => {
  const text = Buffer.from(toJsonString(CreateBatchRequestSchema, request));
  for (const [read, message] of [
    [readMessage, bytes],
    [readJsonMessage, text],
  ] as const) {
    const gone = new AbortController();
    const reading = read(CreateBatchRequestSchema, message, { ...MANY, signal: gone.signal });
    gone.abort(new Error('gone'));
    await expect(reading).rejects.toThrow('gone');
  }
});

const json = (text: string, values = 200_000) =>
  readJsonMessage(CreateBatchRequestSchema, Buffer.from(text), { values });

test('JSON is decoded, and a string counts as one value whatever it contains', async () => {
  const rows = [{ targetUrl: 'https://a.example/?q=[{,,,\\"\\\\{' }];
  expect(await json(JSON.stringify({ rows, unknown: 1 }), 5)).toEqual(create(CreateBatchRequestSchema, { rows }));
});

test('JSON that is not UTF-8 is rejected, and not stored with replacement characters', async () => {
  const latin1 = Buffer.from('{"name": "Café"}', 'latin1');
  const read = readJsonMessage(CreateBatchRequestSchema, latin1, MANY);
  await expect(read).rejects.toThrow('CreateBatchRequest: it is not valid UTF-8.');
});

test.each([
  ['{', 'INVALID_FIELD', /^The message is not a valid signpost\.batches\.v1\.CreateBatchRequest: .*\.$/],
  ['{"name": 1}', 'INVALID_FIELD', /name/],
  [`{"rows": [${Array(25_001).fill('{}').join()}]}`, 'TOO_MANY_ROWS', /25000 rows/],
  [`{"unknown": [${Array(200_001).fill('0').join()}]}`, 'INVALID_FIELD', /more than 200000 values/],
])('JSON that is not such a message, or too large, is rejected with a sentence: %#', async (text, reason, sentence) => {
  const failed = await json(text).then(() => undefined, readFailure);
  expect(failed).toMatchObject({ reason, message: expect.stringMatching(sentence) });
});

const read = (schema: DescMessage, value: object) =>
  readJsonMessage(schema, Buffer.from(JSON.stringify(value)), { values: 1_000 });
const ruled = (rule: object) => ({ rows: [{ id: 'qr_1' }, { id: 'qr_2', policy: { rules: [rule] } }] });

test.each<[DescMessage, object, string]>([
  [
    ListCodesRequestSchema,
    { state: 'CODE_STATE_DELETEDD' },
    'state: must be one of CODE_STATE_ACTIVE, CODE_STATE_PAUSED, CODE_STATE_DELETED.',
  ],
  [ListCodesRequestSchema, { order: '1' }, 'order: must be one of CODE_ORDER_NEWEST, CODE_ORDER_OLDEST.'],
  [GetTargetAtRequestSchema, { at: '2027-02-29T12:00:00Z' }, 'at: there is no such date and time.'],
  [GetTargetAtRequestSchema, { at: '2027-02-28T24:00:00+01:00' }, 'at: there is no such date and time.'],
  [
    ChangeTargetsRequestSchema,
    ruled({ outcome: { page: 'PAGE_LOST' } }),
    'rows[1].policy.rules[0].outcome.page: must be one of PAGE_PAUSED, PAGE_GONE.',
  ],
  [
    ChangeTargetsRequestSchema,
    ruled({ when: { from: '2027-04-31T00:00:00.5Z' } }),
    'rows[1].policy.rules[0].when.from: there is no such date and time.',
  ],
  [ListCodesRequestSchema, { limit: 'x' }, 'limit: expected number (int32), got "x".'],
  [ListCodesRequestSchema, { tags: ['a', 1] }, 'tags: list item #2: expected string, got 1.'],
  [
    ListCodesRequestSchema,
    { type: {} },
    'type: must be one of CODE_TYPE_DYNAMIC, CODE_TYPE_STATIC, CODE_TYPE_LANDING_PAGE.',
  ],
  [
    ChangeTargetsRequestSchema,
    ruled({ name: 1, outcome: { page: 'PAGE_GONE' } }),
    'rows[1].policy.rules[0].name: expected string, got 1.',
  ],
  [GetTargetAtRequestSchema, { at: 'today' }, 'at: is not a valid google.protobuf.Timestamp.'],
  [ChangeTargetsRequestSchema, { rows: [{}, 3] }, 'rows[1]: is not a valid signpost.targets.v1.TargetRowInput.'],
  [ChangeTargetsRequestSchema, { rows: [null] }, 'rows[0]: is not a valid signpost.targets.v1.TargetRowInput.'],
  [ChangeTargetsRequestSchema, { rows: {} }, 'rows: expected Array, got object.'],
])(
  'JSON with a value of another type or that the library would misread is rejected, with its field: %#',
  async (schema, value, message) => {
    const failed: unknown = await read(schema, value).catch((error) => error);
    expect(readFailure(failed)).toMatchObject({ reason: 'INVALID_FIELD', message });
    const [field = '', description] = message.split(/: (.*)/s);
    const violations = (failed as ConnectError).findDetails(BadRequestSchema).flatMap((each) => each.fieldViolations);
    expect(violations).toMatchObject([{ field, description }]);
  },
);

test('JSON may name a field and an enum value in every form of protobuf, and a time with any offset', async () => {
  expect(await read(ListCodesRequestSchema, { state: 'CODE_STATE_PAUSED', type: 2, order: null })).toMatchObject({
    state: 2,
    type: 2,
    order: 0,
  });
  const at = '2028-02-29T23:59:59-12:00';
  const seconds = BigInt(Date.parse(at)) / 1_000n;
  expect(await read(GetTargetAtRequestSchema, { at })).toMatchObject({ at: { seconds } });
});
