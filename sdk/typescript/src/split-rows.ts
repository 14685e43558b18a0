import { SignpostError } from './errors.ts';
import type { BatchRowInput } from './types.gen.ts';

/** The limits of one batch. */
const MOST_ROWS = 25_000;
const MOST_BYTES = 3_500_000;

/**
 * Splits rows so that each part fits in one batch. `fields`: the other fields of the batch, which are sent with every
 * part. A row that does not fit alone is a part of its own, which the API rejects. `mostRows`: 0 and less stand for the
 * limit of the API.
 */
export function* splitRows(
  rows: Iterable<BatchRowInput>,
  { fields, mostRows = 0 }: { readonly fields: object; readonly mostRows?: number | undefined },
): Generator<BatchRowInput[], void, void> {
  const most = mostRows > 0 ? Math.min(mostRows, MOST_ROWS) : MOST_ROWS;
  const empty = jsonBytes({ ...fields, rows: [] });
  let part: BatchRowInput[] = [];
  let bytes = empty;
  for (const row of rows) {
    // With its comma.
    const size = jsonBytes(row) + 1;
    if (part.length > 0 && (part.length + 1 > most || bytes + size > MOST_BYTES)) {
      yield part;
      part = [];
      bytes = empty;
    }
    part.push(row);
    bytes += size;
  }
  if (part.length > 0) yield part;
}

function jsonBytes(value: object): number {
  try {
    return Buffer.byteLength(JSON.stringify(value));
  } catch (error) {
    throw new SignpostError("The values of a batch can't be sent", { cause: error });
  }
}
