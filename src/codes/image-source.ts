import type { Pool } from 'pg';
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

/** What the image of a code shows. */
export async function imageSource(pool: Pool, platformUrl: string, row: CodeRow): Promise<ImageSource> {
  return {
    shortCode: row.short_code,
    name: row.name,
    content: await contentOf(pool, platformUrl, row),
    foreground: row.foreground_color,
    background: row.background_color,
  };
}

async function contentOf(pool: Pool, platformUrl: string, row: CodeRow): Promise<ImageContent> {
  if (row.type === 'static') return row.payload ? { kind: 'payload', text: row.payload } : { kind: 'nothing' };
  if (row.hostname !== null && !(await domainResolves(pool, row.account_id, row.hostname))) {
    return { kind: 'unresolved_domain' };
  }
  return { kind: 'scan_url', url: scanUrl(row, platformUrl) };
}
