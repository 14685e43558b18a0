import { beforeAll, describe, expect, test } from 'vitest';
import { AccountsService, Plan, Role } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CHROMIUM } from '../../../../test/harness/browser.ts';
import { expectAccessible } from '../../accessible.fixture.ts';
import { type DashboardPages, startPages } from '../../pages.fixture.ts';

describe.skipIf(!CHROMIUM)('the page of the API', () => {
  let pages: DashboardPages;
  beforeAll(async () => {
    pages = await startPages();
  });

  const call = (key: string, path: string, requestId: string) =>
    fetch(`${pages.signpost.url}/api/v1${path}`, {
      headers: { authorization: `Bearer ${key}`, 'x-request-id': requestId },
    });

  test('lists the requests, by status and by id', async () => {
    expect((await call(pages.apiKey, '/qr-codes', 'works-1')).status).toBe(200);
    expect((await call(pages.apiKey, '/qr-codes/qr_unknown', 'fails-1')).status).toBe(404);
    const page = await pages.open('/api');
    const rows = page.getByRole('table').getByRole('row');
    await expect
      .poll(async () => {
        await page.reload();
        await page.getByRole('textbox', { name: 'Request id' }).waitFor();
        await page.waitForLoadState('networkidle');
        return rows.count();
      })
      .toBe(3);
    await expectAccessible(page);
    await page.getByRole('textbox', { name: 'Request id' }).focus();
    await page.keyboard.type('fails-1');
    await page.getByText('GET /api/v1/qr-codes/{id}').waitFor();
    await expect.poll(() => rows.count()).toBe(2);
    await page.keyboard.press('Control+a');
    await page.keyboard.type('other');
    await page.getByText('No request matches.').waitFor();
    await page.close();
  });

  test('replaces the key by keyboard, and shows the new one once', async () => {
    // Two spaces, which a browser shows as one, and a letter of two code points.
    await pages.client(AccountsService).renameAccount({ name: 'Harbour  Ku\u0308che' });
    const page = await pages.open('/api');
    await page.getByRole('button', { name: 'Create a new key' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('alertdialog').waitFor();
    await page.keyboard.type('Harbour Kü');
    // Not before all of it is typed.
    await page.keyboard.press('Enter');
    await page.keyboard.type('che');
    await page.keyboard.press('Enter');
    const key = await page.getByText(/^sk_live_\w{43}$/).textContent();
    await expectAccessible(page);
    await page.getByRole('button', { name: 'I have stored it' }).focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.getByText(/^sk_live_\w{43}$/).count()).toBe(0);
    await expect.poll(async () => (await call(String(key), '/qr-codes', 'new-key')).status).toBe(200);
    await expect.poll(async () => (await call(pages.apiKey, '/qr-codes', 'old-key')).status).toBe(401);
    await page.close();
  });

  test('shows a new key whatever is pressed before it arrives, and until it was stored', async () => {
    await pages.client(AccountsService).renameAccount({ name: 'Harbour' });
    const page = await pages.open('/team');
    await page.getByRole('navigation').getByRole('link', { name: 'API' }).click();
    await page.getByRole('button', { name: 'Create a new key' }).click();
    await page.getByRole('alertdialog').getByRole('textbox').fill('Harbour');
    await page.route(/RotateKey/, async (route) => {
      await page.evaluate(() => history.back());
      await page.waitForTimeout(500);
      await route.continue();
    });
    await page.keyboard.press('Enter');
    const key = page.getByText(/^sk_live_\w{43}$/);
    await key.waitFor();
    await page.evaluate(() => history.back());
    await page.waitForTimeout(500);
    expect(await key.isVisible()).toBe(true);
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await page.evaluate(() => history.back());
    await page.waitForURL('**/team');
    await page.close();
  });

  test('says that the key may have been replaced if the answer was lost', async () => {
    await pages.client(AccountsService).renameAccount({ name: 'Harbour' });
    const page = await pages.open('/api');
    await page.getByRole('button', { name: 'Create a new key' }).click();
    const name = page.getByRole('alertdialog').getByRole('textbox');
    await name.fill('Harbour');
    await page.route(
      /RotateKey/,
      async (route) => {
        await route.fetch();
        await route.abort();
      },
      { times: 1 },
    );
    await name.press('Enter');
    await page.getByText('the current key may be invalid already').waitFor();
    await name.press('Enter');
    await page.getByText(/^sk_live_\w{43}$/).waitFor();
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await page.close();
  });

  test('says whether the account has the API, by its plan or its own contract', async () => {
    const accounts = pages.client(AccountsService);
    const hasNone = 'The plan of this account has no API access.';
    await accounts.updateAccount({ plan: Plan.FREE, overrides: { api: true } });
    const page = await pages.open('/api');
    await page.getByText('Requests this month').waitFor();
    expect(await page.getByText(hasNone).count()).toBe(0);
    await accounts.updateAccount({ plan: Plan.BUSINESS, overrides: { api: false } });
    await page.reload();
    await page.getByText(hasNone).waitFor();
    await accounts.updateAccount({ overrides: {} });
    await page.close();
  });

  test('lets only owners change the key', async () => {
    const page = await pages.open('/api', { role: Role.ADMIN, context: { locale: 'de-DE' } });
    await page.getByText('Inhaber des Kontos legen ihn an').waitFor();
    await page.getByText('solche über dem Monatskontingent mit 429 ohne Retry-After').waitFor();
    expect(await page.getByRole('button', { name: /Schlüssel/ }).count()).toBe(0);
    await expectAccessible(page);
    await page.close();
  });
});
