import { createHash } from 'node:crypto';
import { fromBinary } from '@bufbuild/protobuf';
import { landingPageColours, PAGE_STYLE, shownLinks } from '../../../common/codes/page-style.ts';
import { BoundedMap } from '../../../common/runtime/bounded-map.ts';
import { type LandingPage, LandingPageSchema } from '../../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import { escapeHtml } from '../../http/escape-html.ts';
import { type Language, languageOf, PAGE_TEXTS, type PageKind } from './page-texts.ts';

/** An HTML page and its response headers. */
export interface Page {
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

/** A signpost icon for each page. */
const ICONS: Readonly<Record<PageKind, string>> = {
  paused: '<path d="M32 60V30M32 14v-2M14 14h36v16H14zM28 19v6M36 19v6"/>',
  gone: '<path d="M32 60V34M32 20v-8M12 22l34-6 4 8-3 9-34 5z"/>',
  unknown: '<path d="M32 60V12M32 14h18l6 7-6 7H32zM32 32H14l-6 7 6 7h18"/>',
  unavailable: '<path d="M32 60V30M32 14v-2M14 14h36v16H14zM24 22h.1M32 22h.1M40 22h.1"/>',
};

const pages = new Map<string, Page>();

/**
 * The number of rendered landing pages that are kept, and the memory that they take: 290 kB for one of quotation marks.
 */
const MAX_LANDING_PAGES = 500;
const MAX_LANDING_PAGE_BYTES = 16 * 1024 * 1024;

/** By their content. */
const landingPages = new BoundedMap<string, Page>(MAX_LANDING_PAGES, MAX_LANDING_PAGE_BYTES);

/** The page in the visitor's language. */
export function pageFor(kind: PageKind, acceptLanguage: string | undefined): Page {
  const language = languageOf(acceptLanguage);
  const key = `${kind} ${language}`;
  const page = pages.get(key) ?? standardPage(kind, language);
  pages.set(key, page);
  return page;
}

/** An account's own landing page. `bytes`: a serialized `LandingPage`. */
export function landingPage(bytes: Buffer = Buffer.alloc(0)): Page {
  const key = bytes.toString('latin1');
  const cached = landingPages.get(key);
  if (cached) return cached;
  const page = renderLandingPage(fromBinary(LandingPageSchema, bytes));
  landingPages.set(key, page, key.length + page.body.length);
  return page;
}

/** Its language is unknown. All input is escaped as text; its colours are used only if they are legible. */
function renderLandingPage(page: LandingPage): Page {
  const links = shownLinks(page)
    .map(({ label, url }) => `<li><a href="${escapeHtml(url)}" rel="noopener nofollow">${escapeHtml(label)}</a></li>`)
    .join('');
  const body = [
    `<h1>${escapeHtml(page.title)}</h1>`,
    page.text && `<p>${escapeHtml(page.text)}</p>`,
    links && `<ul>${links}</ul>`,
  ].join('');
  return document({ title: page.title, body, style: PAGE_STYLE + landingPageColours(page) });
}

function standardPage(kind: PageKind, language: Language): Page {
  const { title, text } = PAGE_TEXTS[language][kind];
  const icon = `<svg viewBox="0 0 64 64" aria-hidden="true">${ICONS[kind]}</svg>`;
  return document({ title, language, body: `${icon}<h1>${title}</h1><p>${text}</p>`, style: PAGE_STYLE });
}

function document(page: { title: string; body: string; style: string; language?: Language }): Page {
  const { title, body, style, language } = page;
  const html =
    `<!doctype html><html lang="${language ?? 'und'}"><head><meta charset="utf-8">` +
    '<meta name="viewport" content="width=device-width,initial-scale=1">' +
    `<title>${language ? title : escapeHtml(title)}</title><style>${style}</style></head><body><main>${body}</main></body></html>`;
  const hash = createHash('sha256').update(style).digest('base64');
  return {
    body: Buffer.from(html),
    headers: {
      'content-type': 'text/html; charset=utf-8',
      ...(language ? { 'content-language': language, vary: 'accept-language' } : {}),
      'content-security-policy': `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-robots-tag': 'noindex',
    },
  };
}
