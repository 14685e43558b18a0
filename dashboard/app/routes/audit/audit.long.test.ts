import { readFile } from 'node:fs/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { Role } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CodesService } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { DomainsService } from '../../../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { CHROMIUM } from '../../../../test/harness/browser.ts';
import { expectAccessible } from '../../accessible.fixture.ts';
import { type DashboardPages, startPages } from '../../pages.fixture.ts';

describe.skipIf(!CHROMIUM)('the audit log', () => {
  let pages: DashboardPages;
  beforeAll(async () => {
    pages = await startPages({ gateways: 0 });
    await pages.client(CodesService).createCode({ targetUrl: 'https://harbour.example/menu' });
    await pages.client(DomainsService).addDomain({ hostname: 'menu.harbour.example' });
  });

  test('says who changed what, can be filtered by keyboard, and kept as CSV', async () => {
    const page = await pages.open('/audit-log');
    await page.getByText('created a code').waitFor();
    await page.getByText('added a domain').waitFor();
    await expectAccessible(page);
    await page.getByRole('textbox', { name: 'Filter' }).focus();
    await page.keyboard.type('domain');
    await expect.poll(() => page.getByRole('row').count()).toBe(2);
    const downloaded = page.waitForEvent('download');
    await page.getByRole('button', { name: 'CSV of the loaded entries' }).focus();
    await page.keyboard.press('Enter');
    const csv = await readFile(await (await downloaded).path(), 'utf8');
    expect(csv).toMatch(/^\ufeffat,actor,action,subject,id\r\n[^\n]*DomainsService\/AddDomain,domain_\w+,[^\n]*\r\n$/);
    await page.close();
  });

  test('has a change that was made since it was shown', async () => {
    const page = await pages.open('/audit-log');
    await page.getByText('added a domain').waitFor();
    await page.getByRole('navigation').getByRole('link', { name: 'Domains' }).click();
    await page.getByRole('button', { name: 'Add a domain' }).click();
    await page.getByRole('textbox', { name: 'Hostname' }).fill('other.harbour.example');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await page.getByRole('navigation').getByRole('link', { name: 'Audit log' }).click();
    await expect.poll(() => page.getByText('added a domain').count()).toBe(2);
    await page.close();
  });

  test('keeps its times up to date, and offers no further entries where there are none', async () => {
    const page = await pages.open('/audit-log');
    await page.clock.install();
    await page.reload();
    await page
      .getByText(/^(now|\d+ seconds? ago)$/)
      .first()
      .waitFor();
    await page.clock.fastForward('05:00');
    await page
      .getByText(/^5 minutes ago$/)
      .first()
      .waitFor();
    await page.getByRole('textbox', { name: 'Filter' }).fill('nothing like it');
    await page.getByText('No entry matches.').waitFor();
    await page.close();
  });

  test('is shown to a viewer, in German', async () => {
    const page = await pages.open('/audit-log', { role: Role.VIEWER, context: { locale: 'de-DE' } });
    await page.getByText('hat einen Code angelegt').waitFor();
    await expectAccessible(page);
    await page.close();
  });
});
