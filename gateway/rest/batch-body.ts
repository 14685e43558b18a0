import { create, fromJson, type JsonObject, toBinary } from '@bufbuild/protobuf';
import type { Reason } from '../../common/contract/errors.ts';
import { MAX_BATCH_ROWS } from '../../common/contract/limits.ts';
import { fairQueue } from '../../common/runtime/fair-queue.ts';
import { Thread } from '../../common/runtime/thread.ts';
import { BatchRowInputSchema, CreateBatchRequestSchema } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { createBatchBody, rowInput } from './batch-schema.ts';
import { checkBody, faultOf, parseJson } from './body.ts';
import type { Reader } from './endpoint.ts';
import { Refusal } from './refusal.ts';

/** So much is parsed in 0.2 ms, and in 10 ms where every row has a field of a wrong type: 64 KiB of those took 80 ms. */
const LARGE_BYTES = 8 * 1024;

/** Bodies that wait for the thread, of all accounts. The memory for bodies is mostly used up before. */
const MOST_WAITING = 256;

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

/** One at a time, so that a body is still here, and can be dropped, while the thread is busy with others. */
const inTurn = fairQueue({ concurrency: 1, maxWaiting: MOST_WAITING, items: 'batches' });

/**
 * Parses the body of a batch, a large one in a thread of its own: parsing 3.5 MB of JSON, checking 25,000 rows and
 * writing them as protobuf takes a good part of a second, which scans would wait for. Accounts take turns there. The
 * body's memory goes with it. Throws a Refusal.
 */
export async function readBatch(raw: Buffer, { account, signal }: Reader): Promise<BatchBody> {
  const read =
    raw.length < LARGE_BYTES
      ? batchIn(raw)
      : await inTurn(account, signal, () => thread.run(raw, [raw.buffer as ArrayBuffer]));
  if ('reason' in read) throw new Refusal(read.reason, read.sentence);
  return read;
}

/** Reads it here. Only what the wire can't carry is judged; every other rule is the core's. */
export function batchIn(raw: Uint8Array): ReadBatch {
  try {
    const json = parseJson(raw);
    const given: unknown = typeof json === 'object' && json !== null && 'rows' in json ? json.rows : undefined;
    if (Array.isArray(given) && given.length > MAX_BATCH_ROWS) {
      const sentence = `A batch may have at most ${MAX_BATCH_ROWS} rows, this one has ${given.length}; split it.`;
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
  // Asking zod about each field of what is no object took more than 30 times as long.
  if (typeof row !== 'object' || row === null || Array.isArray(row)) return { fault: 'A row must be an object.' };
  const { data, error } = rowInput.safeParse(row);
  if (data) return data;
  const readable = Object.entries(rowInput.shape).flatMap(([name, field]) => {
    const read = field.safeParse((row as JsonObject)[name]);
    return read.success ? [[name, read.data]] : [];
  });
  return { ...Object.fromEntries(readable), fault: faultOf(error) };
}
