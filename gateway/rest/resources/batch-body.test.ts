import { fromBinary } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { CreateBatchRequestSchema } from '../../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { Refusal } from '../refusal.ts';
import { readBatch } from './batch-body.ts';
import { parseBatch } from './parse-batch.ts';

const BY = { account: 'acct_1', signal: undefined };

const rows = (count: number) => Array.from({ length: count }, (_, n) => ({ target_url: `https://example.com/${n}` }));

function bytes(json: unknown): Buffer {
  return Buffer.concat([Buffer.from(JSON.stringify(json))]);
}

/** Counts event loop iterations while another thread works. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let [turns, over] = [0, false];
  const end = () => {
    over = true;
  };
  work.then(end, end);
  while (!over) {
    await new Promise((resolve) => setImmediate(resolve));
    turns += 1;
  }
  return turns;
}

test.each([0, 1, 25_000])('a batch of %i rows is read as it was sent, whoever reads it', async (count) => {
  const json = { name: 'Tables', design: { foregroundColor: '#123456' }, rows: rows(count), unknown: 1 };
  const read = await readBatch(bytes(json), BY);
  expect(read).toEqual(parseBatch(bytes(json)));
  expect(read.fields).toEqual({ name: 'Tables', design: { foregroundColor: '#123456' } });
  const { rows: written } = fromBinary(CreateBatchRequestSchema, read.rows);
  expect(written.map(({ targetUrl }) => targetUrl)).toEqual(rows(count).map(({ target_url }) => target_url));
});

test('while a large body is parsed, the event loop stays responsive', async () => {
  const raw = bytes({ rows: rows(25_000) });
  const reading = readBatch(raw, BY);
  expect(await turnsDuring(reading)).toBeGreaterThan(20);
  // The transferred memory is detached.
  expect(raw.length).toBe(0);
  await reading;
});

test('a large body whose caller disconnects before its turn is not parsed', async () => {
  const raw = bytes({ rows: rows(25_000) });
  const left = new AbortController();
  const [reading, dropped] = [
    readBatch(bytes({ rows: rows(25_000) }), BY),
    readBatch(raw, { ...BY, signal: left.signal }),
  ];
  left.abort(new Error('left'));
  await expect(dropped).rejects.toThrow('left');
  await reading;
  // It was never transferred to the thread.
  expect(raw.length).toBeGreaterThan(0);
});

test('a row with fields of wrong types keeps its other fields and states the error', async () => {
  const json = { rows: [...rows(2_000), { target_url: 7, name: 'Table' }, 'nonsense'] };
  const { rows: written } = fromBinary(CreateBatchRequestSchema, (await readBatch(bytes(json), BY)).rows);
  expect(written.slice(-2)).toMatchObject([
    { name: 'Table', fault: 'target_url: must be a string.' },
    { fault: 'A row must be an object.' },
  ]);
});

test.each([
  [
    'too many rows',
    { rows: rows(25_001) },
    'TOO_MANY_ROWS',
    /^A batch may have at most 25000 rows, this one has 25001/,
  ],
  ['a field of a wrong type', { rows: rows(5_000), name: 7 }, 'INVALID_FIELD', /^name: must be a string\.$/],
  ['no object', [rows(5_000)], 'MALFORMED_BODY', /^The body must be a JSON object\.$/],
])('%s is refused by the thread with its reason', async (_, json, reason, sentence) => {
  const refusal = await readBatch(bytes(json), BY).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(Refusal);
  expect(refusal).toMatchObject({ reason, message: expect.stringMatching(sentence) });
});
