import type { LandingLink, LandingPage } from '../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import { contrast, luminance, parseColour } from './colour.ts';

/** The least contrast of text (WCAG 2.2). */
export const MIN_TEXT_CONTRAST = 4.5;

const LIGHT = '--ground:#f6f5f1;--ink:#1b1b18;--soft:#595850;--mark:#1b1b18';
const DARK = '--ground:#161614;--ink:#f3f2ec;--soft:#b5b3a8;--mark:#f3f2ec';

/** The pages are mostly read on a phone, standing in front of a print: one large message. */
const LAYOUT = `
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

/** The style of the pages that scans end on, light or dark as the visitor's phone is. */
export const PAGE_STYLE = `
:root{color-scheme:light dark;${LIGHT}}
@media(prefers-color-scheme:dark){:root{${DARK}}}${LAYOUT}`;

/** The same as it looks on a phone in one of the two themes, for previews. */
export function pageStyleIn(theme: 'light' | 'dark'): string {
  return `:root{color-scheme:${theme};${theme === 'dark' ? DARK : LIGHT}}${LAYOUT}`;
}

/** The page's background, with black or white text if its own has too little contrast; invalid colours are ignored. */
export function landingPageColours({ backgroundColor, foregroundColor }: LandingPage): string {
  if (!isColour(backgroundColor)) return '';
  const background = luminance(parseColour(backgroundColor));
  const isLegible =
    isColour(foregroundColor) && contrast(luminance(parseColour(foregroundColor)), background) >= MIN_TEXT_CONTRAST;
  const ink = isLegible ? foregroundColor : contrast(0, background) >= contrast(1, background) ? '#000000' : '#ffffff';
  return `:root:root{--ground:${backgroundColor};--ink:${ink};--soft:${ink}}`;
}

/** The links that the page shows: those that lead to a website. */
export function shownLinks({ links }: LandingPage): LandingLink[] {
  return links.filter(({ url }) => /^https?:\/\//i.test(url));
}

/** The core stores colours with six digits. */
function isColour(text: string): boolean {
  return /^#[0-9a-f]{6}$/i.test(text);
}
