import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { type Browser, type BrowserContext, devices } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PAGE_TEXTS, type PageKind } from '../../gateway/redirect/answer/page-texts.ts';
import { landingPage, type Page, pageFor } from '../../gateway/redirect/answer/pages.ts';
import { LandingPageSchema } from '../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import { axeFindings } from '../harness/axe.ts';
import { CHROMIUM, launchBrowser } from '../harness/browser.ts';

/** Where screenshots are left for people, when it is set. */
const SCREENSHOTS = process.env.SCREENSHOTS;
const KINDS: readonly PageKind[] = ['paused', 'gone', 'unknown', 'unavailable'];
const SCHEMES = ['light', 'dark'] as const;

/** What the browser made of a page. */
interface Seen {
  readonly width: number;
  readonly inner: number;
  readonly ground: string;
  readonly lang: string;
  readonly title: string;
  readonly heading: string;
}

function landing(page: MessageInitShape<typeof LandingPageSchema>): Page {
  return landingPage(Buffer.from(toBinary(LandingPageSchema, create(LandingPageSchema, page))));
}

const links = [
  { label: 'Order at the table', url: 'https://example.com/order' },
  { label: 'Speisekarte als PDF, mit Allergenen und Zusatzstoffen', url: 'https://example.com/menu.pdf' },
];
const LANDING_PAGES: Record<string, Page> = {
  plain: landing({ title: 'Trattoria da Paolo', text: 'Open today from 12 to 23.\nWelcome!', links }),
  coloured: landing({
    title: 'Summer',
    text: 'Ice cream',
    links,
    backgroundColor: '#0b3d2e',
    foregroundColor: '#f2e9d8',
  }),
  'hardly readable colours': landing({ title: 'Grey', links, backgroundColor: '#777777', foregroundColor: '#787878' }),
  'one long word': landing({
    title: 'Donaudampfschifffahrtsgesellschaftskapitänsmütze'.repeat(3),
    text: 'x'.repeat(900),
  }),
};

describe.skipIf(!CHROMIUM)('pages on a phone', () => {
  let browser: Browser;
  const outside: string[] = [];
  /** The page that is served next. */
  let shown: (acceptLanguage: string | undefined) => Page;
  const server = createServer((request, response) => {
    const { headers, body } = shown(request.headers['accept-language']);
    response.writeHead(200, headers).end(body);
  });

  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    browser = await launchBrowser();
    if (SCREENSHOTS) mkdirSync(SCREENSHOTS, { recursive: true });
  });
  afterAll(async () => {
    await browser?.close();
    server.close();
  });

  /** Opens what is shown and checks what holds for every page: nothing from outside, no scrolling sideways, axe. */
  async function look(name: string, scheme: 'light' | 'dark', locale = 'en-GB') {
    const context: BrowserContext = await browser.newContext({ ...devices['iPhone 15'], colorScheme: scheme, locale });
    try {
      const page = await context.newPage();
      const complaints: string[] = [];
      page.on('console', (message) => complaints.push(message.text()));
      page.on('request', (request) => outside.push(request.url()));
      const { port } = server.address() as AddressInfo;
      await page.goto(`http://127.0.0.1:${port}/r/abcdefg`);
      if (SCREENSHOTS) await page.screenshot({ path: join(SCREENSHOTS, `${name}-${scheme}-${locale}.png`) });
      // A browser asks for an icon by itself; nothing else may be asked for.
      const asked = outside.splice(0).filter((url) => !url.endsWith('/favicon.ico'));
      expect(asked).toEqual([`http://127.0.0.1:${port}/r/abcdefg`]);
      expect(complaints).toEqual([]);
      const { width, inner, ground, lang, title, heading } = await page.evaluate<Seen>(`({
        width: document.documentElement.scrollWidth,
        inner: window.innerWidth,
        ground: getComputedStyle(document.body).backgroundColor,
        lang: document.documentElement.lang,
        title: document.title,
        heading: document.querySelector('h1').textContent,
      })`);
      expect(width).toBeLessThanOrEqual(inner);
      expect(await axeFindings(page)).toEqual([]);
      return { ground, lang, title, heading };
    } finally {
      await context.close();
    }
  }

  test.each(KINDS)('“%s” is accessible, light and dark', async (kind) => {
    shown = (language) => pageFor(kind, language);
    const [light, dark] = [await look(kind, SCHEMES[0]), await look(kind, SCHEMES[1])];
    expect(light.ground).not.toBe(dark.ground);
    expect(light).toMatchObject({ title: PAGE_TEXTS.en[kind].title, heading: PAGE_TEXTS.en[kind].title });
  });

  test.each(['de-CH', 'fr-FR', 'es-MX', 'pt-BR', 'zh-TW', 'ja-JP', 'nl-NL'])(
    'the visitor’s language: %s',
    async (locale) => {
      shown = (language) => pageFor('gone', language);
      const { lang, heading } = await look('gone', 'light', locale);
      const language = (locale === 'nl-NL' ? 'en' : locale.slice(0, 2)) as keyof typeof PAGE_TEXTS;
      expect(lang).toBe(language);
      expect(heading).toBe(PAGE_TEXTS[language].gone.title);
    },
  );

  test.each(Object.keys(LANDING_PAGES))('a landing page, %s', async (name) => {
    const page = LANDING_PAGES[name];
    if (!page) throw new Error('no such page');
    shown = () => page;
    for (const scheme of SCHEMES) await look(`landing-${name.replaceAll(' ', '-')}`, scheme);
  });
});
