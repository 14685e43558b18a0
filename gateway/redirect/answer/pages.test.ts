import { createHash } from 'node:crypto';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { describe, expect, test } from 'vitest';
import { LandingPageSchema } from '../../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import { languageOf, PAGE_TEXTS, type PageKind } from './page-texts.ts';
import { landingPage, type Page, pageFor } from './pages.ts';

const KINDS: readonly PageKind[] = ['paused', 'gone', 'unknown', 'unavailable'];

function landing(page: MessageInitShape<typeof LandingPageSchema>): Page & { html: string } {
  const made = landingPage(Buffer.from(toBinary(LandingPageSchema, create(LandingPageSchema, page))));
  return { ...made, html: made.body.toString() };
}

test.each([
  [undefined, 'en'],
  ['', 'en'],
  ['*', 'en'],
  ['nl-NL', 'en'],
  ['de', 'de'],
  ['de-CH,de;q=0.9,en;q=0.8', 'de'],
  ['en;q=0.5, fr;q=0.9', 'fr'],
  ['nl, pt-BR;q=0.4, en;q=0.3', 'pt'],
  ['ES-419', 'es'],
  ['zh-Hant-TW', 'zh'],
  ['ja;q=0, en;q=0.1', 'en'],
  ['ja;q=0', 'en'],
  ['constructor', 'en'],
  [';;,,q=', 'en'],
])('Accept-Language: %s is answered in %s', (header, language) => {
  expect(languageOf(header)).toBe(language);
});

test('only the first 256 characters of Accept-Language are read, up to the last whole range', () => {
  expect(languageOf(`${'xx,'.repeat(80)}de`)).toBe('de');
  expect(languageOf(`${'xx,'.repeat(5_000)}de`)).toBe('en');
  // Truncated within the range, German would have the quality 0.
  expect(languageOf(`de;q=0.5,${'x'.repeat(300)}`)).toBe('de');
  expect(languageOf(`fr;q=0.1,${'x'.repeat(240)},de;q=0.9,pt`)).toBe('fr');
  expect(languageOf('x'.repeat(16_000))).toBe('en');
});

describe.each(Object.entries(PAGE_TEXTS))('in %s', (language, texts) => {
  test.each(KINDS)('the page for %s has its text and declares its language', (kind) => {
    const { body, headers } = pageFor(kind, language);
    const html = body.toString();
    expect(html).toContain(`<html lang="${language}">`);
    expect(html).toContain(`<h1>${texts[kind].title}</h1>`);
    expect(html).toContain(texts[kind].text);
    expect(headers).toMatchObject({ 'content-language': language, 'x-robots-tag': 'noindex' });
  });
});

test('pages load no outside resources, and their CSP allows nothing but their own style', () => {
  for (const { body, headers } of [...KINDS.map((kind) => pageFor(kind, 'en')), landing({ title: 'Menu' })]) {
    const html = body.toString();
    expect(html).not.toMatch(/<(script|link|img|iframe|form)|src=|@import|url\(/);
    const [, style = ''] = /<style>(.*?)<\/style>/s.exec(html) ?? [];
    const hash = createHash('sha256').update(style).digest('base64');
    expect(headers['content-security-policy']).toContain(`default-src 'none'; style-src 'sha256-${hash}'`);
    expect(html).not.toMatch(/ style=| on\w+=/);
  }
});

describe('a landing page', () => {
  const hostile = `</title></style><script>alert(1)</script>"'&`;

  test('escapes whatever its owner wrote', () => {
    const { html } = landing({
      title: hostile,
      text: hostile,
      links: [{ label: hostile, url: `https://x/${hostile}` }],
    });
    expect(html).not.toContain('<script');
    expect(html.match(/<\/style>/g)).toHaveLength(1);
    expect(html.match(/<\/title>/g)).toHaveLength(1);
    expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;');
  });

  test('has only http and https links', () => {
    const urls = ['javascript:alert(1)', 'data:text/html,x', ' javascript:alert(1)', 'https://example.com/?a=1&b=2'];
    const { html } = landing({ title: 'Menu', links: urls.map((url) => ({ label: 'Here', url })) });
    expect(html.match(/href="[^"]*"/g)).toEqual(['href="https://example.com/?a=1&amp;b=2"']);
  });

  test('uses its colours only if they are valid and legible', () => {
    const inkOf = (foregroundColor: string, backgroundColor: string) =>
      /:root:root{--ground:([^;]*);--ink:([^;]*);/.exec(landing({ foregroundColor, backgroundColor }).html)?.slice(1);
    expect(inkOf('#112233', '#ffffff')).toEqual(['#ffffff', '#112233']);
    expect(inkOf('#fefefe', '#ffffff')).toEqual(['#ffffff', '#000000']);
    expect(inkOf('#000001', '#000000')).toEqual(['#000000', '#ffffff']);
    expect(inkOf('', '#123456')).toEqual(['#123456', '#ffffff']);
    expect(inkOf('#000000', 'red;}</style>')).toBeUndefined();
    expect(inkOf('red;}</style>', '#ffffff')).toEqual(['#ffffff', '#000000']);
  });
});

test('rendered landing pages are kept up to some memory', () => {
  const links = Array(20).fill({ label: '"'.repeat(100), url: `https://example.com/${'"'.repeat(2_000)}` });
  const render = (title: string) => landing({ title, text: '"'.repeat(5_000), links }).body;
  const first = render('Menu 0');
  expect(render('Menu 0')).toBe(first);
  for (let rest = 16 * 1024 * 1024, nth = 1; rest > 0; nth++) rest -= render(`Menu ${nth}`).length;
  expect(render('Menu 0')).not.toBe(first);
});
