import { create, fromJson, type JsonObject, toBinary } from '@bufbuild/protobuf';
import type { Reason } from '../../../common/contract/errors.ts';
import { MAX_ROWS, tooManyRows } from '../../../common/contract/limits.ts';
import { BatchRowInputSchema, CreateBatchRequestSchema } from '../../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { checkBody, firstFault } from '../body/check-body.ts';
import { parseJson } from '../body/parse-json.ts';
import { Refusal } from '../refusal.ts';
import { createBatchBody, rowInput } from './batch-schema.ts';

/** A parsed batch. */
export interface BatchBody {
  /** A `CreateBatchRequest` without its rows, in protobuf's JSON form. */
  readonly fields: JsonObject;
  /** The rows, serialized as in a `CreateBatchRequest`; empty if there are none. */
  readonly rows: Uint8Array;
  readonly rowCount: number;
}

/** The result of parsing a body: the batch, or the error. */
export type ParsedBatch = BatchBody | { readonly reason: Reason; readonly sentence: string; readonly rowCount: number };

/**
 * Parses the body of a batch. It rejects only what protobuf can't represent; all other rules are checked by the core.
 */
export function parseBatch(raw: Uint8Array): ParsedBatch {
  let rowCount = 0;
  try {
    const json = parseJson(raw);
    const givenRows: unknown = typeof json === 'object' && json !== null && 'rows' in json ? json.rows : undefined;
    if (Array.isArray(givenRows)) rowCount = givenRows.length;
    if (rowCount > MAX_ROWS) return { reason: 'TOO_MANY_ROWS', sentence: tooManyRows(rowCount), rowCount };
    const { rows, ...fields } = checkBody(createBatchBody, json);
    const message = create(CreateBatchRequestSchema, {
      rows: rows.map((row) => fromJson(BatchRowInputSchema, readRow(row))),
    });
    return { fields, rows: toBinary(CreateBatchRequestSchema, message), rowCount };
  } catch (error) {
    if (error instanceof Refusal) return { reason: error.reason, sentence: error.message, rowCount };
    throw error;
  }
}

/**
 * Reads a row. One with a field of a wrong type keeps its other fields and gets a `fault`, with which it fails alone.
 */
function readRow(row: unknown): JsonObject {
  // Having zod check each field of a non-object took more than 30 times as long.
  if (typeof row !== 'object' || row === null || Array.isArray(row)) return { fault: 'A row must be an object.' };
  const { data, error } = rowInput.safeParse(row);
  if (data) return data;
  const readable = Object.entries(rowInput.shape).flatMap(([name, field]) => {
    const read = field.safeParse((row as JsonObject)[name]);
    return read.success ? [[name, read.data]] : [];
  });
  return { ...Object.fromEntries(readable), fault: firstFault(error) };
}
