import { promisify } from 'node:util';
import { crc32, deflateRaw } from 'node:zlib';
import { Zip, type ZipInputFile } from 'fflate';
import type { Pool } from 'pg';
import { failure } from '../../common/contract/errors.ts';
import { encodeId } from '../../common/contract/ids.ts';
import { run, statement } from '../../common/postgres/sql.ts';
import type { ExportBatchRequest } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { ImageFormat } from '../../proto/gen/signpost/images/v1/images_pb.ts';
import { scanUrl } from '../codes/code-row.ts';
import type { Database } from '../db/database.ts';
import { joinUndeletedCode } from '../db/look-up-code.ts';
import { domainResolves } from '../domains/for-printing.ts';
import { draw } from '../images/draw.ts';
import { type Format, sizeOf } from '../images/drawing.ts';
import type { BatchEntity } from './entities.ts';
import { Manifest } from './manifest.ts';
import { findBatch } from './read.ts';

const MAX_CHUNK_BYTES = 64 * 1024;

/**
 * A chunk is sent once it has this size: about one of the largest images, or eight small ones. Images of other calls
 * are drawn between two chunks.
 */
const CHUNK_BYTES = 8 * 1024;

/** Compression methods. Source: ZIP, APPNOTE.TXT 4.4.5. */
const [STORED, DEFLATED] = [0, 8];

const deflate = promisify<Buffer, Buffer>(deflateRaw);
const PAGE_ROWS = 500;
/** The columns of the manifest. */
const COLUMNS = ['index', 'file', 'id', 'short_code', 'scan_url', 'target_url', 'name', 'external_ref'] as const;

interface PrintedRow {
  index: number;
  target_url: string;
  name: string | null;
  external_ref: string | null;
  code_id: string;
  short_code: string;
}

/** A row whose code was deleted, or that never had one, has no short code. Index: batch_rows_pkey. */
const page = statement<PrintedRow | { index: number; short_code: null }>(
  'batches_printed_page',
  `select r.*, c.short_code
   from (
     select index, target_url, name, external_ref, code_id from batch_rows
     where batch_id = $1 and index > $2 order by index limit ${PAGE_ROWS}
   ) r
   ${joinUndeletedCode('short_code', 'r.code_id', '$3')}
   order by r.index`,
);

/**
 * The images of a batch's codes as a ZIP file, in print order, followed by a manifest. An image is drawn once the
 * reader has taken the previous chunks, so that memory holds only a page of rows, a chunk, the compressed manifest and
 * the entries of the ZIP's directory.
 */
export async function* exportBatch(
  { orm, pool }: Database,
  platformUrl: string,
  accountId: string,
  request: ExportBatchRequest,
): AsyncGenerator<{ chunk: Uint8Array; images: number }> {
  const batch = await findBatch(orm.em.fork(), accountId, request.id);
  if (batch.hostname != null && !(await domainResolves(pool, accountId, batch.hostname))) {
    throw failure('DOMAIN_NOT_RESOLVED', "The batch's custom domain does not resolve at the moment; try again.");
  }
  const format: Format = request.format === ImageFormat.SVG ? 'svg' : 'png';
  const size = sizeOf(request.size);
  const manifest = new Manifest();
  await manifest.add(COLUMNS);
  const pending: Uint8Array[] = [];
  let pendingBytes = 0;
  const zip = new Zip((error, bytes) => {
    if (error) throw error;
    pending.push(bytes);
    pendingBytes += bytes.length;
  });
  const add = (file: Pick<ZipInputFile, 'filename' | 'size' | 'crc' | 'compression'>) => {
    const added: ZipInputFile = { ...file, mtime: batch.createdAt };
    zip.add(added);
    return (packed: Buffer, isLast: boolean) => added.ondata?.(null, packed as Uint8Array<ArrayBuffer>, isLast);
  };
  function* takeChunks(minBytes: number): Generator<{ chunk: Buffer; images: number }> {
    if (pendingBytes < minBytes) return;
    const bytes = Buffer.concat(pending.splice(0), pendingBytes);
    pendingBytes = 0;
    for (let at = 0; at < bytes.length; at += MAX_CHUNK_BYTES)
      yield { chunk: bytes.subarray(at, at + MAX_CHUNK_BYTES), images };
  }
  let images = 0;

  for await (const row of rowsOf(pool, batch)) {
    const file = `${String(row.index + 1).padStart(5, '0')}-${row.short_code}.${format}`;
    const url = scanUrl({ hostname: batch.hostname ?? null, short_code: row.short_code }, platformUrl);
    const { foregroundColor: foreground, backgroundColor: background } = batch;
    const title = row.name || row.short_code;
    const image = await draw({ text: url, format, size, foreground, background, title });
    const [compression, packed] = format === 'svg' ? [DEFLATED, await deflate(image)] : [STORED, image];
    add({ filename: file, size: image.length, crc: crc32(image), compression })(packed, true);
    await manifest.add([
      String(row.index),
      file,
      encodeId('qr', row.code_id),
      row.short_code,
      url,
      row.target_url,
      row.name ?? '',
      row.external_ref ?? '',
    ]);
    images += 1;
    yield* takeChunks(CHUNK_BYTES);
  }
  const { blocks, ...content } = await manifest.end();
  const write = add({ filename: 'manifest.csv', compression: DEFLATED, ...content });
  for (const block of blocks) {
    write(block, block === blocks.at(-1));
    yield* takeChunks(CHUNK_BYTES);
  }
  zip.end();
  yield* takeChunks(0);
}

async function* rowsOf(pool: Pool, batch: BatchEntity): AsyncGenerator<PrintedRow> {
  let last = -1;
  for (;;) {
    const rows = await run(pool, page, [batch.id, last, batch.accountId]);
    for (const row of rows) if (row.short_code !== null) yield row;
    const end = rows.at(-1);
    if (!end || rows.length < PAGE_ROWS) return;
    last = end.index;
  }
}
