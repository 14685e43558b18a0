import type { Pool } from 'pg';
import { decodeId } from '../../common/contract/ids.ts';
import { first, statement } from '../../common/postgres/sql.ts';
import { domainResolves } from '../domains/for-printing.ts';
import { type CodeRow, scanUrl } from './code-row.ts';

/** The properties of a code that its image depends on. */
export interface ImageSource {
  readonly shortCode: string;
  readonly name: string | null;
  readonly content: ImageContent;
  /** `#rgb` or `#rrggbb`. */
  readonly foreground: string;
  /** `#rgb` or `#rrggbb`. */
  readonly background: string;
}

/** The content of the image, or why it cannot be drawn. */
export type ImageContent =
  | { readonly kind: 'scan_url'; readonly url: string }
  | { readonly kind: 'payload'; readonly text: string }
  | { readonly kind: 'nothing' }
  /** The custom domain in the code's scan URL is failing or was removed. */
  | { readonly kind: 'unresolved_domain' };

type ImageRow = Pick<
  CodeRow,
  'account_id' | 'type' | 'short_code' | 'name' | 'payload' | 'hostname' | 'foreground_color' | 'background_color'
>;

/** Index: codes_pkey. */
const find = statement<ImageRow>(
  'codes_image_source',
  `select account_id, type, short_code, name, payload, hostname, foreground_color, background_color
   from codes where id = $1 and account_id = $2 and deleted_at is null`,
);

/** Reads the code with the id `qr_…`; undefined when the account has no such code. `accountId`: UUID. */
export async function imageSource(
  pool: Pool,
  platformUrl: string,
  accountId: string,
  id: string,
): Promise<ImageSource | undefined> {
  const uuid = decodeId('qr', id);
  const row = uuid === undefined ? undefined : await first(pool, find, [uuid, accountId]);
  if (!row) return undefined;
  return {
    shortCode: row.short_code,
    name: row.name,
    content: await contentOf(pool, platformUrl, row),
    foreground: row.foreground_color,
    background: row.background_color,
  };
}

async function contentOf(pool: Pool, platformUrl: string, row: ImageRow): Promise<ImageContent> {
  if (row.type === 'static') return row.payload ? { kind: 'payload', text: row.payload } : { kind: 'nothing' };
  if (row.hostname !== null && !(await domainResolves(pool, row.account_id, row.hostname))) {
    return { kind: 'unresolved_domain' };
  }
  return { kind: 'scan_url', url: scanUrl(row, platformUrl) };
}
