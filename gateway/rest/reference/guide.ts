import { readdirSync, readFileSync } from 'node:fs';
import { type Heading, rendered } from './markdown.ts';

/** The guide, rendered: its sections one after another. */
export interface Guide {
  readonly html: string;
  readonly headings: readonly Heading[];
}

const FOLDER = new URL('guide/', import.meta.url);

/** The pages of the guide as they are written, in their order. `{base_url}` stands for the address of this Signpost. */
export function guidePages(): string[] {
  return readdirSync(FOLDER)
    .sort()
    .map((name) => readFileSync(new URL(name, FOLDER), 'utf8'));
}

/** Renders the guide for this Signpost. */
export function guide(baseUrl: string): Guide {
  const pages = guidePages().map((page) => rendered(page.replaceAll('{base_url}', baseUrl)));
  return {
    html: pages.map(({ html }) => `<section class="guide">${html}</section>`).join('\n'),
    headings: pages.flatMap(({ headings }) => headings),
  };
}
