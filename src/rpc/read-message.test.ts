import { create, toBinary } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { CreateBatchRequestSchema } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { readFailure } from '../contract/errors.ts';
import { readMessage } from './read-message.ts';

const request = create(CreateBatchRequestSchema, {
  name: 'Tables',
  rows: Array.from({ length: 25_000 }, (_, n) => ({ targetUrl: `https://example.com/${n}`, tags: ['a', `b${n}`] })),
  design: { foregroundColor: '#123456' },
});
const bytes = toBinary(CreateBatchRequestSchema, request);

test('a large message is read whole, and others get their turns meanwhile', async () => {
  let immediates = 0;
  const again = () => {
    immediates += 1;
    immediate = setImmediate(again);
  };
  let immediate = setImmediate(again);
  expect(await readMessage(CreateBatchRequestSchema, bytes)).toEqual(request);
  clearImmediate(immediate);
  expect(immediates).toBeGreaterThan(bytes.length / 128 / 1024);
});

test.each([0, 1, 10, 1_000])('a message of %i rows is what was written', async (rows) => {
  const some = create(CreateBatchRequestSchema, { name: 'Tables', rows: request.rows.slice(0, rows) });
  expect(await readMessage(CreateBatchRequestSchema, toBinary(CreateBatchRequestSchema, some))).toEqual(some);
});

test.each([
  ['in its first field', Uint8Array.of(0xff, 0xff)],
  ['behind 100,000 bytes', Uint8Array.of(...bytes.subarray(0, 100_000), 0xff)],
  ['by its end', bytes.subarray(0, -1)],
])('what is broken %s is refused with a sentence', async (_, broken) => {
  const failed = await readMessage(CreateBatchRequestSchema, broken).then(() => undefined, readFailure);
  expect(failed).toMatchObject({
    reason: 'INVALID_FIELD',
    message: 'The message is no signpost.batches.v1.CreateBatchRequest.',
  });
});
