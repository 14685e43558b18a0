import { createHash } from 'node:crypto';
import { fromBinary } from '@bufbuild/protobuf';
import { type LandingPage, LandingPageSchema } from '../../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import { type Language, languageOf, PAGE_TEXTS, type PageKind } from './page-texts.ts';

/** An HTML page and its response headers. */
export interface Page {
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

/** The pages are mostly read on a phone, standing in front of a print: one large message, in light and dark. */
const STYLE = `
:root{color-scheme:light dark;--ground:#f6f5f1;--ink:#1b1b18;--soft:#595850;--mark:#1b1b18}
@media(prefers-color-scheme:dark){:root{--ground:#161614;--ink:#f3f2ec;--soft:#b5b3a8;--mark:#f3f2ec}}
*{box-sizing:border-box;margin:0}
body{min-height:100vh;min-height:100svh;display:grid;place-items:center;padding:2rem 1.5rem;background:var(--ground);color:var(--ink);font:1.125rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Noto Sans CJK SC",sans-serif}
main{width:100%;max-width:26rem}
svg{display:block;width:4rem;height:4rem;margin:0 0 2rem -.75rem;fill:none;stroke:var(--mark);stroke-width:3;stroke-linecap:round;stroke-linejoin:round}
h1{font-size:clamp(1.75rem,8vw,2.5rem);line-height:1.15;letter-spacing:-.02em;text-wrap:balance;overflow-wrap:anywhere}
p{margin-top:1rem;color:var(--soft);text-wrap:pretty;white-space:pre-line;overflow-wrap:anywhere}
ul{list-style:none;padding:0;margin-top:2rem;display:grid;gap:.75rem}
a{display:block;padding:1rem 1.25rem;border:2px solid currentColor;border-radius:.875rem;color:inherit;font-weight:600;text-decoration:none;overflow-wrap:anywhere}
a:hover{text-decoration:underline}
a:focus-visible{outline:3px solid currentColor;outline-offset:3px}`;

/** A signpost icon for each page. */
const ICONS: Readonly<Record<PageKind, string>> = {
  paused: '<path d="M32 60V30M32 14v-2M14 14h36v16H14zM28 19v6M36 19v6"/>',
  gone: '<path d="M32 60V34M32 20v-8M12 22l34-6 4 8-3 9-34 5z"/>',
  unknown: '<path d="M32 60V12M32 14h18l6 7-6 7H32zM32 32H14l-6 7 6 7h18"/>',
  unavailable: '<path d="M32 60V30M32 14v-2M14 14h36v16H14zM24 22h.1M32 22h.1M40 22h.1"/>',
};

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const pages = new Map<string, Page>();

/** Rendered landing pages by their content, cleared when full. */
const landingPages = new Map<string, Page>();
const MAX_LANDING_PAGES = 500;

/** The page in the reader's language. */
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
  if (landingPages.size >= MAX_LANDING_PAGES) landingPages.clear();
  landingPages.set(key, page);
  return page;
}

/** Its language is unknown. All input is escaped as text; its colours are used only if they are legible. */
function renderLandingPage(page: LandingPage): Page {
  const links = page.links
    .filter(({ url }) => /^https?:\/\//i.test(url))
    .map(({ label, url }) => `<li><a href="${escaped(url)}" rel="noopener nofollow">${escaped(label)}</a></li>`)
    .join('');
  const body = [
    `<h1>${escaped(page.title)}</h1>`,
    page.text && `<p>${escaped(page.text)}</p>`,
    links && `<ul>${links}</ul>`,
  ].join('');
  return document({ title: page.title, body, style: STYLE + colours(page) });
}

function standardPage(kind: PageKind, language: Language): Page {
  const { title, text } = PAGE_TEXTS[language][kind];
  const icon = `<svg viewBox="0 0 64 64" aria-hidden="true">${ICONS[kind]}</svg>`;
  return document({ title, language, body: `${icon}<h1>${title}</h1><p>${text}</p>`, style: STYLE });
}

function document(page: { title: string; body: string; style: string; language?: Language }): Page {
  const { title, body, style, language } = page;
  const html =
    `<!doctype html><html lang="${language ?? 'und'}"><head><meta charset="utf-8">` +
    '<meta name="viewport" content="width=device-width,initial-scale=1">' +
    `<title>${language ? title : escaped(title)}</title><style>${style}</style></head><body><main>${body}</main></body></html>`;
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

/** The page's background, with black or white text if its own has too little contrast; invalid colours are ignored. */
function colours({ backgroundColor, foregroundColor }: LandingPage): string {
  if (!/^#[0-9a-f]{6}$/i.test(backgroundColor)) return '';
  const background = luminance(backgroundColor);
  const isLegible = /^#[0-9a-f]{6}$/i.test(foregroundColor) && contrast(luminance(foregroundColor), background) >= 4.5;
  const ink = isLegible ? foregroundColor : contrast(0, background) >= contrast(1, background) ? '#000000' : '#ffffff';
  return `:root:root{--ground:${backgroundColor};--ink:${ink};--soft:${ink}}`;
}

function contrast(one: number, other: number): number {
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
}

/** Relative luminance of `#rrggbb`, 0–1 (WCAG 2.2). */
function luminance(colour: string): number {
  const channel = (at: number) => {
    const share = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}
