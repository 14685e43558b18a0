import { createHmac, timingSafeEqual } from 'node:crypto';
import { failure } from '../../common/contract/errors.ts';
import { writeUuid } from '../../common/contract/ids.ts';

const UUID_BYTES = 16;
const TAG_BYTES = 16;

/**
 * Opaque positions in lists. A cursor contains the sort key of the last item of a page, so that paging continues even
 * if that item is deleted meanwhile, and an HMAC over list and position, so that only cursors issued for the list are
 * accepted. `list` identifies a list: the account's UUID for its codes, else a name, with the UUID for an account's
 * list.
 */
export interface Cursors {
  issue(list: string, position: string): string;
  /** The position after which the next page starts; undefined if the cursor was not issued for this list. */
  read(list: string, cursor: string): string | undefined;
}

/** Encodes positions, with a fixed length in bytes if `length` is set. */
interface PositionCodec {
  readonly length?: number;
  write(position: string): Buffer;
  read(bytes: Buffer): string;
}

const UUIDS: PositionCodec = {
  length: UUID_BYTES,
  write(uuid) {
    const bytes = Buffer.alloc(UUID_BYTES);
    writeUuid(uuid, bytes, 0);
    return bytes;
  },
  read: (bytes) => bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'),
};

const TEXTS: PositionCodec = {
  write: (text) => Buffer.from(text),
  read: (bytes) => bytes.toString(),
};

/** Cursors for lists sorted by id (UUIDs) and by name. `key`: a secret that all cores share. */
export function cursors(key: Buffer): { readonly byId: Cursors; readonly byName: Cursors } {
  return { byId: cursorsOf(key, UUIDS), byName: cursorsOf(key, TEXTS) };
}

function cursorsOf(key: Buffer, codec: PositionCodec): Cursors {
  const tagOf = (list: string, position: Buffer) =>
    createHmac('sha256', key).update('cursor').update(list).update(position).digest().subarray(0, TAG_BYTES);
  return {
    issue(list, position) {
      const bytes = codec.write(position);
      return Buffer.concat([bytes, tagOf(list, bytes)]).toString('base64url');
    },
    read(list, cursor) {
      const bytes = Buffer.from(cursor, 'base64url');
      // Decoding ignores characters that are foreign to base64url and surplus bits: those were not issued.
      if (bytes.toString('base64url') !== cursor) return undefined;
      const length = bytes.length - TAG_BYTES;
      if (length < 0 || (codec.length !== undefined && length !== codec.length)) return undefined;
      const position = bytes.subarray(0, length);
      return timingSafeEqual(bytes.subarray(length), tagOf(list, position)) ? codec.read(position) : undefined;
    },
  };
}

/** The position after which a page starts; null for the first page. Fails with INVALID_CURSOR. */
export function positionAfter(cursors: Cursors, list: string, cursor: string | undefined): string | null {
  const position = cursor === undefined ? null : cursors.read(list, cursor);
  if (position === undefined) throw failure('INVALID_CURSOR', 'cursor: was not issued by this service for this list.');
  return position;
}
