import { BoundedMap } from '../../../common/runtime/bounded-map.ts';
import type { Route } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { codeRecord, versionIn } from './route-record.ts';

/** The number of codes that are served from memory, and the bytes that they take. */
const MAX_UNWRITTEN = 100_000;
const MAX_UNWRITTEN_BYTES = 32 * 1024 * 1024;

/** The codes that could not be written to the route table, which are served from memory. */
export interface UnwrittenRoutes {
  /**
   * Keeps a code that the table has in an older version. One that it lacks altogether is looked up in Postgres, which
   * also has what is changed elsewhere.
   */
  keep(route: Route): void;
  /** Serves a code until the table has this version or a newer one; `record`: see `codeRecord`. */
  serve(shortCode: string, record: Buffer): void;
  /** The newer one of a code's record in the table, `written`, and the one that is kept. */
  newer(shortCode: string, written: Buffer): Buffer;
}

/** `isInTable`: whether the table has any version of a code. `onKept`: called with each code that `keep` has kept. */
export function unwrittenRoutes(
  isInTable: (shortCode: string) => boolean,
  onKept: UnwrittenRoutes['serve'],
): UnwrittenRoutes {
  /** By short code. Those that the table has meanwhile do no harm. */
  const records = new BoundedMap<string, Buffer>(MAX_UNWRITTEN, MAX_UNWRITTEN_BYTES);

  function serve(shortCode: string, record: Buffer): void {
    const before = records.get(shortCode);
    if (!before || versionIn(before) < versionIn(record)) records.set(shortCode, record, record.length);
  }

  return {
    keep({ version, entry }) {
      if (entry.case !== 'code' || !isInTable(entry.value.shortCode)) return;
      const record = codeRecord(version, entry.value);
      if (!record) return;
      serve(entry.value.shortCode, record);
      onKept(entry.value.shortCode, record);
    },
    serve,
    newer(shortCode, written) {
      const kept = records.get(shortCode);
      return kept && versionIn(kept) > versionIn(written) ? kept : written;
    },
  };
}
