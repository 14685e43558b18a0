import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { WebhooksService } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { axeFindings } from '../../test/harness/axe.ts';
import { CHROMIUM } from '../../test/harness/browser.ts';
import { type DashboardPages, startPages } from './pages.fixture.ts';

/**
 * What holds for every page, of the account with sample data: in both themes and languages, on large and small screens.
 */

/** Where screenshots are written, when it is set: `docs/dashboard`. */
const { SCREENSHOTS } = process.env;

const LARGE = { width: 1440, height: 900 };
const SMALL = { width: 390, height: 844 };

/** The pages by the names of their pictures; `…` stands for the id of what the sample contains. */
const PAGES = {
  overview: '/',
  codes: '/codes',
  'one-code': '/codes/…',
  'new-code': '/codes/new',
  batches: '/batches',
  'new-batch': '/batches/new',
  'one-batch': '/batches/…',
  'folders-and-tags': '/folders-and-tags',
  domains: '/domains',
  webhooks: '/webhooks',
  'one-endpoint': '/webhooks/…',
  api: '/api',
  team: '/team',
  'audit-log': '/audit-log',
} as const;

type Name = keyof typeof PAGES;
const NAMES = Object.keys(PAGES) as Name[];

interface View {
  readonly name: string;
  readonly context: BrowserContextOptions;
  readonly pages: readonly Name[];
}

/** What pages are opened with. The tests of each page check the other combinations of theme and size. */
const VIEWS: readonly View[] = [
  {
    name: '1440-light',
    context: { viewport: LARGE, colorScheme: 'light' },
    // The tests of the other pages check them at this size, with `expectAccessible`.
    pages: SCREENSHOTS ? NAMES : ['codes', 'one-code'],
  },
  { name: '390-german', context: { viewport: SMALL, colorScheme: 'dark', locale: 'de-DE' }, pages: NAMES },
  ...(SCREENSHOTS
    ? ([
        { name: '1440-dark', context: { viewport: LARGE, colorScheme: 'dark' }, pages: NAMES },
        { name: '390-light', context: { viewport: SMALL, colorScheme: 'light' }, pages: NAMES },
      ] as const)
    : []),
];

describe.skipIf(!CHROMIUM)('every page', () => {
  let pages: DashboardPages;
  const ids = new Map<Name, string>();

  beforeAll(async () => {
    pages = await startPages({ gateways: 0 });
    const { signpost, account } = pages;
    await promisify(execFile)(process.execPath, ['local/sample/main.ts', account, String(Date.now())], {
      env: {
        PATH: process.env.PATH,
        DATABASE_URL: signpost.databaseUrl,
        DATA_DIR: signpost.dataDir,
        CORE_PORT: String(signpost.corePort),
        SERVICE_TOKEN: signpost.serviceToken,
        PUBLIC_URL: signpost.url,
        SECRET_KEY: Buffer.alloc(32).toString('base64'),
      },
    });
    const codes = pages.client(CodesService);
    const busiest = async () => (await codes.listCodes({ limit: 100 })).codes.find(({ policy }) => policy);
    await vi.waitFor(async () => expect((await busiest())?.scanCount).toBeGreaterThan(100n), { timeout: 60_000 });
    ids.set('one-code', (await busiest())?.id ?? '');
    ids.set('one-batch', (await pages.client(BatchesService).listBatches({})).batches[0]?.id ?? '');
    ids.set('one-endpoint', (await pages.client(WebhooksService).listEndpoints({})).endpoints[0]?.id ?? '');
  });

  /** Opens a page, and waits until it has shown what it has to show. */
  async function open(name: Name, context: BrowserContextOptions): Promise<Page> {
    const page = await pages.open(PAGES[name].replace('…', ids.get(name) ?? ''), { context });
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.waitForLoadState('networkidle');
    return page;
  }

  async function check(page: Page, picture: string): Promise<void> {
    expect(await axeFindings(page)).toEqual([]);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect(overflow, 'pixels beyond the right edge').toBeLessThanOrEqual(0);
    if (SCREENSHOTS) await page.screenshot({ path: `${SCREENSHOTS}/${picture}.png` });
    await page.close();
  }

  describe.each(VIEWS)('$name', ({ name: view, context, pages: shown }) => {
    test.each(shown)('%s is accessible and fits', async (name) => {
      await check(await open(name, context), `${name}-${view}`);
    });
  });
});
