import { timestampDate } from '@bufbuild/protobuf/wkt';
import type { Code } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { downloadCsv } from '../../components/charts/csv.ts';

/** The most codes of one file, which is made in memory: some 20 MB. */
export const MAX_EXPORTED = 100_000;

/** Offers the codes as a CSV file. Returns false, without a file, if they are more than MAX_EXPORTED. */
export async function exportCodes(
  pages: AsyncIterable<readonly Code[]>,
  { onProgress, signal }: { onProgress: (done: number) => void; signal: AbortSignal },
): Promise<boolean> {
  const rows = [
    ['id', 'short_url', 'name', 'target_url', 'folder', 'tags', 'scans', 'state', 'created_at', 'updated_at'],
  ];
  for await (const page of pages) {
    if (signal.aborted) return true;
    rows.push(...page.map(rowOf));
    if (rows.length > MAX_EXPORTED + 1) return false;
    onProgress(rows.length - 1);
  }
  downloadCsv('codes.csv', rows);
  return true;
}

function rowOf(code: Code): string[] {
  const { createdAt, updatedAt } = code;
  return [
    code.id,
    code.scanUrl,
    code.name ?? '',
    code.targetUrl ?? '',
    code.folder?.name ?? '',
    code.tags.join(';'),
    String(code.scanCount),
    code.deletedAt ? 'deleted' : code.paused ? 'paused' : 'active',
    createdAt ? timestampDate(createdAt).toISOString() : '',
    updatedAt ? timestampDate(updatedAt).toISOString() : '',
  ];
}
