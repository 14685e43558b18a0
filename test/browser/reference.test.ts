import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { contract } from '../contract/client.ts';
import { axeFindings } from '../harness/axe.ts';
import { CHROMIUM, launchBrowser } from '../harness/browser.ts';

const WIDTHS = { desktop: 1_200, phone: 390 };
const VIEWS = Object.entries(WIDTHS).flatMap(([name, width]) =>
  (['light', 'dark'] as const).map((scheme) => ({ name, width, scheme })),
);

/** Where screenshots are written, when it is set: `docs/screenshots`. */
const SCREENSHOTS = process.env.SCREENSHOTS;

const api = contract({ env: { PUBLIC_URL: 'https://sign.example' } });

describe.skipIf(!CHROMIUM)('the reference in a browser', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());

  /** Opens the page; fails afterwards if anything else was requested, or if the console complained. */
  async function look(
    { width = WIDTHS.desktop, ...options }: { width?: number; scheme?: 'light' | 'dark'; javaScript?: boolean },
    use: (page: Page) => Promise<void>,
  ): Promise<void> {
    const context = await browser.newContext({
      viewport: { width, height: 844 },
      colorScheme: options.scheme ?? 'light',
      javaScriptEnabled: options.javaScript ?? true,
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    try {
      const page = await context.newPage();
      const complaints: string[] = [];
      const requested: string[] = [];
      page.on('console', (message) => complaints.push(message.text()));
      page.on('pageerror', (error) => complaints.push(String(error)));
      page.on('request', (request) => requested.push(request.url()));
      await page.goto(`${api.signpost.url}/docs`);
      await use(page);
      expect(complaints).toEqual([]);
      expect([...new Set(requested)].filter((url) => !url.startsWith('data:'))).toEqual([`${api.signpost.url}/docs`]);
    } finally {
      await context.close();
    }
  }

  test.each(VIEWS)(
    'is accessible and does not scroll sideways: $name, $scheme',
    async ({ width, scheme }) => {
      await look({ width, scheme }, async (page) => {
        expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(width);
        await page.evaluate(`for (const each of document.querySelectorAll('details')) each.open = true`);
        // The other operations look the same, and axe takes five times as long for all of them.
        await page.evaluate(
          `for (const each of document.querySelectorAll('.operation:not([aria-labelledby=createBatch]), #contents > ul')) each.remove()`,
        );
        const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
        expect(await axeFindings(page, (axe) => axe.withTags(tags))).toEqual([]);
      });
    },
    120_000,
  );

  // No tests without it: CI fails if one is skipped.
  test.each(SCREENSHOTS ? VIEWS : [])('has its picture taken: $name, $scheme', async ({ width, scheme }) => {
    await look({ width, scheme }, async (page) => {
      const take = (name: string) =>
        page.screenshot({ path: join(SCREENSHOTS ?? '', `reference-${name}-${width}-${scheme}.png`) });
      await take('guide');
      await page.evaluate(`document.getElementById('createCode').scrollIntoView()`);
      await page.waitForTimeout(500);
      await take('operation');
    });
  });

  test.each(Object.values(WIDTHS))(
    'breaks no word, at %i px',
    async (width) => {
      await look({ width }, async (page) => {
        await page.evaluate(`for (const each of document.querySelectorAll('details')) each.open = true`);
        expect(await page.evaluate<string[]>(BROKEN_WORDS)).toEqual([]);
      });
    },
    120_000,
  );

  test('can be read without JavaScript: tabs, contents and details work, and nothing is offered that does not', async () => {
    await look({ javaScript: false, width: WIDTHS.phone }, async (page) => {
      await page.getByRole('button', { name: 'Contents' }).click();
      await page.locator('#contents').getByRole('link', { name: 'Create a code' }).click();
      expect(page.url()).toMatch(/#createCode$/);
      const operation = page.locator('section[aria-labelledby=createCode]');
      await page.keyboard.press('Escape');
      await operation.locator('label', { hasText: 'TypeScript' }).click();
      expect(await operation.locator('pre[data-language=ts]').isVisible()).toBe(true);
      expect(await operation.locator('pre[data-language=sh]').isVisible()).toBe(false);
      await operation.locator('summary', { hasText: 'fields' }).first().click();
      expect(await operation.locator('[id="createCode.201.data.scan_url"]').isVisible()).toBe(true);
      for (const selector of ['search', '.copy', '.theme']) {
        expect(await page.locator(selector).first().isVisible()).toBe(false);
      }
    });
  });

  test('is searched by keyboard: headings, operations and fields', async () => {
    await look({}, async (page) => {
      const input = page.getByRole('combobox', { name: 'Search the reference' });
      const search = async (text: string) => {
        await page.keyboard.press('/');
        expect(await input.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true);
        await page.keyboard.type(text);
        expect(await input.getAttribute('aria-expanded')).toBe('true');
      };
      await search('idempotency');
      await page.keyboard.press('Enter');
      expect(page.url()).toMatch(/#idempotency$/);
      expect(await page.getByRole('listbox').isVisible()).toBe(false);
      await search('create a');
      await page.keyboard.press('ArrowDown');
      const chosen = await input.getAttribute('aria-activedescendant');
      expect(await page.locator(`[id="${chosen}"]`).getAttribute('aria-selected')).toBe('true');
      expect(await page.locator('[aria-selected=true]').count()).toBe(1);
      await page.keyboard.press('ArrowUp');
      await page.keyboard.press('Enter');
      expect(page.url()).toMatch(/#createCode$|#createBatch$/);
      // A field within closed details is opened.
      await search('period_scans');
      await page.keyboard.press('Enter');
      expect(page.url()).toMatch(/#getCodeAnalytics\.200\.data\.period_scans$/);
      await expect.poll(() => page.locator('[id="getCodeAnalytics.200.data.period_scans"]').isVisible()).toBe(true);
      await search('nonsense that is nowhere');
      expect(await page.getByRole('listbox').textContent()).toBe('Nothing found');
      await page.keyboard.press('Enter');
      await page.keyboard.press('Escape');
      expect(await page.getByRole('listbox').isVisible()).toBe(false);
    });
  });

  test('is searched on a phone, where the contents open for it and close after it', async () => {
    await look({ width: WIDTHS.phone }, async (page) => {
      await page.getByRole('button', { name: 'Contents' }).click();
      await page.getByRole('combobox').fill('webhook');
      expect(await axeFindings(page, (axe) => axe.include('#contents'))).toEqual([]);
      await page.getByRole('option').first().click();
      expect(page.url()).toMatch(/#webhooks$/);
      expect(await page.locator('#contents').isVisible()).toBe(false);
    });
  });

  test('copies the call that is shown, and shows every call in the language chosen once', async () => {
    await look({}, async (page) => {
      const operation = page.locator('section[aria-labelledby=getCode]');
      const copied = async () => {
        const button = operation.getByRole('button').first();
        await button.click();
        await expect.poll(() => button.textContent()).toBe('Copied');
        return page.evaluate('navigator.clipboard.readText()');
      };
      expect(await copied()).toBe(await operation.locator('pre[data-language=sh]').textContent());
      await operation.locator('label', { hasText: 'TypeScript' }).click();
      expect(await copied()).toBe(await operation.locator('pre[data-language=ts]').textContent());
      await page.reload();
      expect(await page.locator('section[aria-labelledby=listTags] pre[data-language=ts]').isVisible()).toBe(true);
    });
  });

  test('has a theme of its own, which stays', async () => {
    await look({ scheme: 'light' }, async (page) => {
      const ground = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
      const light = await ground();
      await page.getByRole('button', { name: 'Dark' }).click();
      const dark = await ground();
      expect(dark).not.toBe(light);
      expect(await page.evaluate('localStorage.theme')).toBe('dark');
      await page.getByRole('button', { name: 'Light' }).click();
      expect(await ground()).toBe(light);
    });
  });
});

/** The words of the text that are on two lines without a hyphen or a place to break. Code blocks scroll. */
const BROKEN_WORDS = `(() => {
  const broken = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.closest('style, script, pre') || !node.parentElement.checkVisibility()) continue;
    for (const { 0: word, index } of node.data.matchAll(/[^\\s\\u2013-]+/g)) {
      const range = document.createRange();
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const tops = new Set([...range.getClientRects()].map(({ top }) => Math.round(top)));
      if (tops.size > 1) broken.push(word);
    }
  }
  return broken;
})()`;
