import type { Pool } from 'pg';
import { decodeId } from '../../common/contract/ids.ts';
import { first, statement } from '../../common/postgres/sql.ts';
import { domainResolves } from '../domains/for-printing.ts';
import type { ImageContent, ImageSources } from '../images/source.ts';
import { type CodeRow, scanUrl } from './code-row.ts';

type Drawn = Pick<
  CodeRow,
  'account_id' | 'type' | 'short_code' | 'name' | 'payload' | 'hostname' | 'foreground_color' | 'background_color'
>;

/** Index: codes_pkey. */
const find = statement<Drawn>(
  'codes_image_view',
  `select account_id, type, short_code, name, payload, hostname, foreground_color, background_color
   from codes where id = $1 and account_id = $2 and deleted_at is null`,
);

/** What images ask of codes. */
export function codesForImages(pool: Pool, platformUrl: string): ImageSources {
  async function contentOf(row: Drawn): Promise<ImageContent> {
    if (row.type === 'static') return row.payload ? { kind: 'payload', text: row.payload } : { kind: 'nothing' };
    if (row.hostname !== null && !(await domainResolves(pool, row.account_id, row.hostname))) {
      return { kind: 'unresolved_domain' };
    }
    return { kind: 'scan_url', url: scanUrl(row, platformUrl) };
  }
  return {
    async imageSource(accountId, id) {
      const uuid = decodeId('qr', id);
      const row = uuid === undefined ? undefined : await first(pool, find, [uuid, accountId]);
      if (!row) return undefined;
      return {
        shortCode: row.short_code,
        name: row.name,
        content: await contentOf(row),
        foreground: row.foreground_color,
        background: row.background_color,
      };
    },
  };
}
