import type { Readable } from 'node:stream';
import { stringify } from 'csv-stringify/sync';
import type { Pool } from 'pg';
import { ZipFile } from 'yazl';
import type { ExportBatchRequest } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { scanUrl } from '../codes/code-row.ts';
import { failure } from '../contract/errors.ts';
import { encodeId } from '../contract/ids.ts';
import { run, statement } from '../db/sql.ts';
import { domainResolves } from '../domains/for-printing.ts';
import { draw } from '../images/draw.ts';
import { type Format, sizeOf } from '../images/drawing.ts';
import type { BatchRecord } from './batch-row.ts';
import { findBatch } from './read.ts';

const CHUNK_BYTES = 64 * 1024;
const PAGE_ROWS = 500;
const MANIFEST = ['index', 'file', 'id', 'short_code', 'scan_url', 'target_url', 'name', 'external_ref'] as const;

interface PrintedRow {
  index: number;
  target_url: string;
  name: string | null;
  external_ref: string | null;
  code_id: string;
  short_code: string;
}

/** Indexes: batch_rows_pkey in its order, codes_pkey. */
const printed = statement<PrintedRow>(
  'batches_printed_rows',
  `select r.index, r.target_url, r.name, r.external_ref, r.code_id, c.short_code
   from batch_rows r join codes c on c.id = r.code_id and c.account_id = $3
   where r.batch_id = $1 and r.index > $2 and c.deleted_at is null
   order by r.index limit ${PAGE_ROWS}`,
);

/**
 * The images of a batch's codes as a ZIP file, in print order, then a manifest. An image is drawn when the reader has
 * taken the ones before, so that a page of rows and a few images are all that is in memory.
 */
export async function* exportBatch(
  pool: Pool,
  platformUrl: string,
  accountId: string,
  request: ExportBatchRequest,
): AsyncGenerator<{ chunk: Uint8Array; images: number }> {
  const batch = await findBatch(pool, accountId, request.id);
  if (batch.hostname !== null && !(await domainResolves(pool, accountId, batch.hostname))) {
    throw failure('DOMAIN_NOT_RESOLVED', "The batch's custom domain does not resolve at the moment; try again.");
  }
  const format: Format = request.format === 'svg' ? 'svg' : 'png';
  const size = sizeOf(request.size);
  const zip = new ZipFile();
  const output = zip.outputStream as Readable;
  const options = { mtime: batch.created_at, compress: format === 'svg' };
  const manifest = [line(MANIFEST)];
  let images = 0;

  for await (const row of rowsOf(pool, batch)) {
    const file = `${String(row.index + 1).padStart(5, '0')}-${row.short_code}.${format}`;
    const url = scanUrl({ hostname: batch.hostname, short_code: row.short_code }, platformUrl);
    const { foreground_color: foreground, background_color: background } = batch;
    const title = row.name || row.short_code;
    const image = await draw({ text: url, format, size, foreground, background, title });
    zip.addBuffer(image, file, options);
    manifest.push(
      line([
        String(row.index),
        file,
        encodeId('qr', row.code_id),
        row.short_code,
        url,
        row.target_url,
        row.name ?? '',
        row.external_ref ?? '',
      ]),
    );
    images += 1;
    for (const chunk of inChunks(output.read())) yield { chunk, images };
  }
  zip.addBuffer(Buffer.from(manifest.join('')), 'manifest.csv', { mtime: batch.created_at });
  zip.end();
  for await (const bytes of output) for (const chunk of inChunks(bytes)) yield { chunk, images };
}

async function* rowsOf(pool: Pool, batch: BatchRecord): AsyncGenerator<PrintedRow> {
  let last = -1;
  for (;;) {
    const rows = await run(pool, printed, [batch.id, last, batch.account_id]);
    yield* rows;
    const end = rows.at(-1);
    if (!end || rows.length < PAGE_ROWS) return;
    last = end.index;
  }
}

/** A line of CSV (RFC 4180). What a spreadsheet would take for a formula gets an apostrophe before it. */
function line(values: readonly string[]): string {
  return stringify([[...values]], { record_delimiter: '\r\n', escape_formulas: true });
}

function* inChunks(bytes: Buffer | null): Generator<Buffer> {
  for (let at = 0; bytes && at < bytes.length; at += CHUNK_BYTES) yield bytes.subarray(at, at + CHUNK_BYTES);
}
