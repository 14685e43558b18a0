import { create, fromJson, type JsonObject, toBinary } from '@bufbuild/protobuf';
import { BatchRowInputSchema, CreateBatchRequestSchema } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import type { Reason } from '../../src/contract/errors.ts';
import { Thread } from '../../src/contract/thread.ts';
import { createBatchBody, rowInput } from './batch-schema.ts';
import { checkBody, faultOf, parseJson } from './body.ts';
import { Refusal } from './refusal.ts';

const MAX_ROWS = 25_000;

/** So much is read in a millisecond or two. */
const LARGE_BYTES = 64 * 1024;

/** A batch as it came in. */
export interface BatchBody {
  /** All of a `CreateBatchRequest` but its rows, in protobuf's JSON form. */
  readonly fields: JsonObject;
  /** The rows, as they stand in a `CreateBatchRequest` over the wire; empty when there are none. */
  readonly rows: Uint8Array;
}

/** What comes of a body: the batch, or why it is none. */
export type ReadBatch = BatchBody | { readonly reason: Reason; readonly sentence: string };

const thread = new Thread<Uint8Array, ReadBatch>(new URL('./batch-body.thread.ts', import.meta.url), 'reads batches');

/**
 * Reads the body of a batch, a large one in a thread of its own: reading 3.5 MB of JSON, checking 25,000 rows and
 * writing them as protobuf takes a good part of a second, which scans would wait for. The body's memory goes with it.
 * Throws a Refusal.
 */
export async function readBatch(raw: Buffer): Promise<BatchBody> {
  const read = raw.length < LARGE_BYTES ? batchIn(raw) : await thread.ask(raw, [raw.buffer as ArrayBuffer]);
  if ('reason' in read) throw new Refusal(read.reason, read.sentence);
  return read;
}

/** Reads it here. Only what the wire can't carry is judged; every other rule is the core's. */
export function batchIn(raw: Uint8Array): ReadBatch {
  try {
    const json = parseJson(raw);
    const given: unknown = typeof json === 'object' && json !== null && 'rows' in json ? json.rows : undefined;
    if (Array.isArray(given) && given.length > MAX_ROWS) {
      const sentence = `A batch may have at most ${MAX_ROWS} rows, this one has ${given.length}; split it.`;
      return { reason: 'TOO_MANY_ROWS', sentence };
    }
    const { rows, ...fields } = checkBody(createBatchBody, json);
    const written = create(CreateBatchRequestSchema, {
      rows: rows.map((row) => fromJson(BatchRowInputSchema, readRow(row))),
    });
    return { fields, rows: toBinary(CreateBatchRequestSchema, written) };
  } catch (error) {
    if (error instanceof Refusal) return { reason: error.reason, sentence: error.message };
    throw error;
  }
}

/** The row; one with a field of a wrong type keeps the others and gets a fault, with which it fails alone. */
function readRow(row: unknown): JsonObject {
  const { data, error } = rowInput.safeParse(row);
  if (data) return data;
  const readable = Object.entries(rowInput.shape).flatMap(([name, field]) => {
    const read = field.safeParse(Object(row)[name]);
    return read.success ? [[name, read.data]] : [];
  });
  return { ...Object.fromEntries(readable), fault: faultOf(error) };
}
