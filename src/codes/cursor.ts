import { createHmac, timingSafeEqual } from 'node:crypto';

const UUID_BYTES = 16;
const TAG_BYTES = 16;

/**
 * Opaque positions in an account's list of codes: the id of the last code of a page, so that the walk goes on though
 * that code is deleted meanwhile, and an HMAC over account and id, so that only what was issued to the account is
 * accepted.
 */
export interface Cursors {
  /** `accountId`, `codeId`: UUIDs. */
  issue(accountId: string, codeId: string): string;
  /** The UUID that the next page starts after; undefined when the cursor was not issued to this account. */
  read(accountId: string, cursor: string): string | undefined;
}

/** `key`: a secret that all cores share. */
export function cursors(key: Buffer): Cursors {
  const tagOf = (accountId: string, position: Buffer) =>
    createHmac('sha256', key).update('cursor').update(accountId).update(position).digest().subarray(0, TAG_BYTES);
  return {
    issue(accountId, codeId) {
      const position = Buffer.from(codeId.replaceAll('-', ''), 'hex');
      return Buffer.concat([position, tagOf(accountId, position)]).toString('base64url');
    },
    read(accountId, cursor) {
      const bytes = Buffer.from(cursor, 'base64url');
      if (bytes.length !== UUID_BYTES + TAG_BYTES) return undefined;
      const position = bytes.subarray(0, UUID_BYTES);
      if (!timingSafeEqual(bytes.subarray(UUID_BYTES), tagOf(accountId, position))) return undefined;
      return position.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
    },
  };
}
