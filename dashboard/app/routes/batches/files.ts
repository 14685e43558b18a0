import { createClient } from '@connectrpc/connect';
import {
  type Batch,
  BatchesService,
  type BatchRow,
  type RowStatus,
} from '../../../../proto/gen/signpost/batches/v1/batches_pb.ts';
import type { ImageFormat } from '../../../../proto/gen/signpost/images/v1/images_pb.ts';
import { binaryTransport } from '../../data/transport.ts';
import { tagsCell } from './check-rows.ts';

/** The most rows of one call. */
const PAGE_ROWS = 1_000;

const client = createClient(BatchesService, binaryTransport);

/** Loads the ZIP of a batch's images, which the core draws and packs. `onProgress`: with the images so far. */
export async function loadImages(
  batch: Batch,
  format: ImageFormat,
  { signal, onProgress }: { signal: AbortSignal; onProgress: (images: number) => void },
): Promise<Blob> {
  const parts: BlobPart[] = [];
  for await (const { chunk, images } of client.exportBatch({ id: batch.id, format }, { signal })) {
    parts.push(new Uint8Array(chunk));
    onProgress(images);
  }
  return new Blob(parts, { type: 'application/zip' });
}

/** Loads all rows with one of these statuses, in print order. */
export async function loadRows(
  batch: Batch,
  statuses: readonly RowStatus[],
  { signal, onProgress }: { signal: AbortSignal; onProgress: (rows: number) => void },
): Promise<BatchRow[]> {
  const loaded: BatchRow[] = [];
  for (const status of statuses) {
    for (let offset = 0; ; ) {
      const { rows, total } = await client.getBatch({ id: batch.id, limit: PAGE_ROWS, offset, status }, { signal });
      loaded.push(...rows);
      onProgress(loaded.length);
      offset += rows.length;
      if (rows.length === 0 || offset >= total) break;
    }
  }
  return loaded.sort((one, other) => one.index - other.index);
}

/** A table of codes, with the same columns as the manifest in the ZIP. */
export function codeTable(rows: readonly BatchRow[]): string[][] {
  return [
    ['index', 'id', 'short_code', 'scan_url', 'target_url', 'name', 'external_ref'],
    ...rows.map(({ index, codeId, shortCode, scanUrl, targetUrl, name, externalRef }) =>
      [String(index), codeId, shortCode, scanUrl, targetUrl, name, externalRef].map((value) => value ?? ''),
    ),
  ];
}

/** A table of rows without codes; corrected, it can be the file of another batch. `inWords`: for the core's reasons. */
export function failedTable(rows: readonly BatchRow[], inWords: (reason: string) => string): string[][] {
  return [
    ['position', 'target_url', 'name', 'folder', 'tags', 'external_ref', 'campaign_type', 'reason'],
    ...rows.map(({ index, targetUrl, name, folder, tags, externalRef, campaignType, reason }) =>
      [
        String(index + 1),
        targetUrl,
        name,
        folder,
        tagsCell(tags),
        externalRef,
        campaignType,
        inWords(reason ?? ''),
      ].map((value) => value ?? ''),
    ),
  ];
}
