import { beforeAll, describe, expect, test } from 'vitest';
import { Role } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { DomainsService } from '../../../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { CHROMIUM } from '../../../../test/harness/browser.ts';
import { type Dns, startDns } from '../../../../test/harness/dns.ts';
import { expectAccessible } from '../../accessible.fixture.ts';
import { type DashboardPages, startPages } from '../../pages.fixture.ts';

describe.skipIf(!CHROMIUM)('domains', () => {
  let dns: Dns;
  let pages: DashboardPages;
  beforeAll(async () => {
    dns = await startDns();
    pages = await startPages({
      gateways: 0,
      env: { DNS_RESOLVERS: dns.address, PLATFORM_ADDRESSES: '192.0.2.10' },
    });
  });

  test('are added, checked and removed by keyboard', async () => {
    const page = await pages.open('/domains');
    await page.getByRole('button', { name: 'Add a domain' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('textbox', { name: 'Hostname' }).waitFor();
    await page.keyboard.type('https://menu.example.com');
    await page.keyboard.press('Enter');
    await page.getByText('must be only a hostname').waitFor();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('menu.example.com');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'menu.example.com' }).waitFor();
    expect(await page.getByRole('dialog').count()).toBe(0);
    await expectAccessible(page);

    const check = page.getByRole('button', { name: 'Check now: menu.example.com' });
    await check.focus();
    await page.keyboard.press('Enter');
    await page.getByText('There is no TXT record at _signpost.menu.example.com yet.').waitFor();
    dns.mode = 'broken';
    // While a check runs, the button does nothing.
    const unanswered = page.getByText('The DNS servers did not answer for menu.example.com');
    const checkUnanswered = async () => {
      await check.press('Enter');
      return unanswered.isVisible();
    };
    await expect.poll(checkUnanswered, { interval: 1_000 }).toBe(true);
    dns.mode = 'answering';

    const { domains } = await pages.client(DomainsService).listDomains({});
    dns.set('_signpost.menu.example.com', 'TXT', String(domains[0]?.txtValue));
    dns.set('menu.example.com', 'A', '192.0.2.10');
    const live = page.getByText('Live', { exact: true });
    const checkAgain = async () => {
      // While a check runs, the button does nothing; afterwards a live domain has none.
      if (await check.isVisible()) await check.press('Enter', { timeout: 2_000 }).catch(() => undefined);
      return live.isVisible();
    };
    await expect.poll(checkAgain, { interval: 1_000 }).toBe(true);

    await page.getByRole('button', { name: 'Remove: menu.example.com' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('alertdialog').waitFor();
    await page.keyboard.type('menu.example.com');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'No domains yet' }).waitFor();
    await page.close();
  });

  test('can be seen by a viewer, in German, without buttons to change them', async () => {
    const { domain } = await pages.client(DomainsService).addDomain({ hostname: 'karte.example.com' });
    await pages.client(DomainsService).verifyDomain({ id: domain?.id ?? '' });
    const page = await pages.open('/domains', { role: Role.VIEWER, context: { locale: 'de-DE' } });
    await page.getByText('Wartet auf den TXT-Eintrag', { exact: true }).waitFor();
    await page.getByText('Bei _signpost.karte.example.com gibt es noch keinen TXT-Eintrag.').waitFor();
    expect(await page.getByRole('button', { name: /hinzufügen|prüfen|entfernen/ }).count()).toBe(0);
    await expectAccessible(page);
    await page.close();
  });
});
