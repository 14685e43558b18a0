import { setTimeout as sleep } from 'node:timers/promises';
import type { Response } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { AccountsService, Plan, Role } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { BatchesService } from '../../../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { DomainsService } from '../../../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { CHROMIUM } from '../../../../test/harness/browser.ts';
import { expectAccessible } from '../../accessible.fixture.ts';
import { type DashboardPages, startPages } from '../../pages.fixture.ts';

/**
 * What the first page may load of the built files until all but the chart is there, in bytes as they are transferred.
 */
const MAX_FIRST_LOAD = 200_000;

const DAY_MS = 86_400_000;
/** How long the tests that need scans of today may take, in ms. */
const TESTS_MS = 180_000;

describe.skipIf(!CHROMIUM)('the overview', () => {
  let pages: DashboardPages;
  beforeAll(async () => {
    pages = await startPages();
  });

  test('leads a new account to its first code, by keyboard', async () => {
    const page = await pages.open('/');
    await page.getByRole('heading', { name: 'Create your first code' }).waitFor();
    await expectAccessible(page);
    await page.getByRole('link', { name: 'Skip to content' }).focus();
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/codes/new');
    await page.close();
  });

  test('offers a viewer nothing that they may not do', async () => {
    const page = await pages.open('/', { role: Role.VIEWER });
    await page.getByText('Scans appear here as soon as someone creates a code').waitFor();
    expect(await page.getByRole('link', { name: 'New code' }).count()).toBe(0);
    await page.close();
  });

  describe('of an account with codes', () => {
    beforeAll(async () => {
      // The scans are of today, in UTC, until the last test has seen them.
      const left = DAY_MS - (Date.now() % DAY_MS);
      if (left < TESTS_MS) await sleep(left);
      const codes = pages.client(CodesService);
      const [menu, poster] = await Promise.all(
        ['Menu', 'Poster'].map((name) => codes.createCode({ targetUrl: `https://harbour.example/${name}`, name })),
      );
      for (const url of [menu?.code?.scanUrl, menu?.code?.scanUrl, poster?.code?.scanUrl]) {
        await scan(String(url));
      }
    }, TESTS_MS + 120_000);

    test('shows what is scanned, and says that all is well', async () => {
      const page = await pages.open('/');
      await page.getByText('Nothing needs your attention.').waitFor();
      const top = page.getByRole('list').filter({ hasText: 'Menu' }).getByRole('listitem');
      await expect
        .poll(
          async () => {
            await page.reload();
            await page.getByText('Most scanned codes').waitFor();
            await page.getByText('Loading').waitFor({ state: 'hidden' });
            return top.allInnerTexts();
          },
          { timeout: 60_000, interval: 2_000 },
        )
        .toEqual([
          expect.stringMatching(/^Menu\n.*harbour\.example\/Menu\n2/),
          expect.stringMatching(/^Poster\n.*\n1/),
        ]);
      await expect.poll(() => page.locator('dl').textContent()).toMatch(/^Scans today3/);
      await page.locator('canvas').waitFor();
      await expectAccessible(page);
      const drawn = () => page.locator('canvas').evaluate((canvas: HTMLCanvasElement) => canvas.toDataURL());
      const light = await drawn();
      await page.emulateMedia({ colorScheme: 'dark' });
      await expect.poll(drawn).not.toBe(light);
      await page.getByRole('button', { name: 'Show as a table' }).press('Enter');
      await page.getByRole('table', { name: 'Scans' }).waitFor();
      await expectAccessible(page);
      await page.close();
    });

    test('shows the days of the server, whatever the time is in the browser', async () => {
      const page = await pages.open('/');
      await page.addInitScript(() => {
        const now = Date.now;
        Date.now = () => now() + 36 * 3_600_000;
      });
      await page.reload();
      await expect.poll(() => page.locator('dl').textContent()).toMatch(/^Scans today3/);
      await page.close();
    });

    test('calls the most scanned codes what they are called now', async () => {
      const page = await pages.open('/');
      await page.route(/ListTopCodes/, async (route) => {
        const response = await route.fetch();
        return route.fulfill({ response, body: (await response.text()).replaceAll('Menu', 'Old menu') });
      });
      await page.reload();
      await page.getByRole('link', { name: 'Menu', exact: true }).waitFor();
      expect(await page.getByText('Old menu').count()).toBe(0);
      await page.close();
    });

    test('says which figures could not be loaded', async () => {
      const page = await pages.open('/?days=7');
      await page.route(/GetScanReport/, (route) => route.fulfill({ status: 500, json: { code: 'internal' } }));
      await page.reload();
      await expect.poll(() => page.locator('dl').textContent()).toMatch(/^Scans today–This could not be loaded/);
      await page.close();
    });

    test('keeps the chosen period in its address', async () => {
      const page = await pages.open('/');
      await page.getByRole('link', { name: '90 days' }).focus();
      await page.keyboard.press('Enter');
      await page.waitForURL('**/?days=90');
      await page.getByText('Scans in 90 days').waitFor();
      expect(await page.getByRole('list', { name: 'Period' }).locator('[aria-current]').textContent()).toBe('90 days');
      await page.close();
    });

    test('ignores a period that it does not offer', async () => {
      for (const days of ['abc', '31']) {
        const page = await pages.open(`/?days=${days}`);
        await page.getByText('Scans in 30 days').waitFor();
        await page.close();
      }
    });

    test('counts a code as soon as it is created', async () => {
      const page = await pages.open('/');
      const inUse = page.getByText('Codes in use').locator('..');
      await expect.poll(() => inUse.textContent()).toMatch(/^Codes in use2/);
      await page.getByRole('navigation').getByRole('link', { name: 'Codes' }).click();
      await page.getByRole('link', { name: 'New code' }).click();
      await page.getByLabel('Target URL').fill('https://harbour.example/third');
      await page.getByRole('button', { name: 'Create code' }).click();
      await page.waitForURL(/\/codes\/qr_/);
      await page.getByRole('navigation').getByRole('link', { name: 'Overview' }).click();
      await expect.poll(() => inUse.textContent()).toMatch(/^Codes in use3/);
      await page.close();
    });

    test('names what needs attention', async () => {
      await pages.client(DomainsService).addDomain({ hostname: 'menu.harbour.example' });
      const page = await pages.open('/', { context: { locale: 'de-DE' } });
      await page.getByText('menu.harbour.example ist noch nicht eingerichtet').waitFor();
      await expectAccessible(page);
      await page.getByRole('link', { name: 'DNS-Einträge ansehen' }).focus();
      await page.keyboard.press('Enter');
      await page.waitForURL('**/domains');
      await page.close();
    });

    test('knows whether the account has batches, by its plan or its own contract', async () => {
      const accounts = pages.client(AccountsService);
      await pages.client(BatchesService).createBatch({ name: 'Tables', rows: [{ targetUrl: 'nowhere' }] });
      const page = await pages.open('/team');
      const failed = page.getByText('1 row of the batch “Tables” could not be created');
      await accounts.updateAccount({ plan: Plan.FREE, overrides: { bulk: true } });
      await page.goto(pages.dashboard.url);
      await failed.waitFor();
      await accounts.updateAccount({ plan: Plan.BUSINESS, overrides: { bulk: false } });
      await page.reload();
      await page.getByText('menu.harbour.example is not set up yet').waitFor();
      await page.waitForLoadState('networkidle');
      expect(await page.getByText('Not everything could be checked.').count()).toBe(0);
      expect(await failed.count()).toBe(0);
      await accounts.updateAccount({ overrides: {} });
      await page.close();
    });

    test(`loads at most ${MAX_FIRST_LOAD} bytes of scripts, styles and texts`, async () => {
      const known = await pages.open('/', { context: { locale: 'en-US' } });
      // Signed in, but with nothing in the cache.
      const storageState = await known.context().storageState();
      const context = await known.context().browser()?.newContext({ storageState });
      if (!context) throw new Error('The browser is gone.');
      const page = await context.newPage();
      const files = new Map<string, Promise<{ bytes: number; encoding: string | null }>>();
      const measure = async (response: Response) => ({
        bytes: (await response.request().sizes()).responseBodySize,
        encoding: await response.headerValue('content-encoding'),
      });
      page.on('response', (response) => {
        const { pathname } = new URL(response.url());
        if (!pathname.startsWith('/rpc/')) files.set(pathname, measure(response));
      });
      await page.goto(pages.dashboard.url);
      await page.locator('canvas').waitFor();
      await page.getByRole('img').first().waitFor();
      await page.waitForLoadState('networkidle');
      const loaded = await Promise.all([...files].map(async ([path, file]) => ({ path, ...(await file) })));
      await context.close();
      const scripts = loaded.filter(({ path }) => path.endsWith('.js'));
      expect(new Set(scripts.map(({ encoding }) => encoding))).toEqual(new Set(['br']));
      // uPlot follows when the figures are shown.
      const [first, later] = [false, true].map((isLater) =>
        loaded.filter(({ path }) => path.includes('/plot-') === isLater).reduce((sum, { bytes }) => sum + bytes, 0),
      );
      console.log(`The overview loads ${first} bytes, then ${later} for the chart.`);
      expect(first, JSON.stringify(loaded, null, 1)).toBeLessThan(MAX_FIRST_LOAD);
    });
  });
});

/** Scans a code; a gateway learns of a new one from the log. */
async function scan(url: string): Promise<void> {
  for (let left = 100; left > 0; left--) {
    const { status } = await fetch(url, { redirect: 'manual' });
    if (status === 302) return;
    await sleep(100);
  }
  throw new Error('The gateway does not know the code.');
}
