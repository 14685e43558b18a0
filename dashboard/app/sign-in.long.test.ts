import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { AccountsService, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { internal } from '../../test/contract/internal.ts';
import { CHROMIUM, launchBrowser } from '../../test/harness/browser.ts';
import { type Signpost, startSignpost } from '../../test/harness/processes.ts';
import { type Dashboard, startDashboard } from '../server/dashboard.fixture.ts';
import { startProvider, type TestProvider } from '../server/provider.fixture.ts';

/** Signing in at a real OpenID provider with a browser, and what a person with two accounts sees. */

describe.skipIf(!CHROMIUM)('people who sign in at a provider', () => {
  let browser: Browser;
  let signpost: Signpost;
  let dashboard: Dashboard;
  let provider: TestProvider;

  beforeAll(async () => {
    signpost = await startSignpost({ gateways: 0, roles: ['rpc'] });
    const port = await freePort();
    provider = await startProvider(`http://${LOOPBACK}:${port}`);
    const { issuer, clientId, clientSecret } = provider;
    dashboard = await startDashboard(signpost, {
      port,
      env: { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret },
    });
    for (const [name, role] of [
      ['Bakery', Role.OWNER],
      ['Café', Role.VIEWER],
    ] as const) {
      const { accountId } = await signpost.createAccount({ name });
      const accounts = internal(signpost, AccountsService, accountId);
      await accounts.addMember({ email: 'anna@example.com', role });
      if (role === Role.OWNER) await accounts.addMember({ email: 'clara@example.com', role: Role.EDITOR });
    }
    provider.people.set('anna', { email: 'anna@example.com', email_verified: true, name: 'Anna Arendt' });
    provider.people.set('clara', { email: 'clara@example.com', email_verified: true });
    provider.people.set('berta', { email: 'berta@example.com', email_verified: true });
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  /** Opens the dashboard in a new browser, and fills in the provider's forms. */
  async function signIn(person: string): Promise<Page> {
    const page = await (await browser.newContext({ locale: 'en-GB' })).newPage();
    await page.goto(`${dashboard.url}/team`);
    await page.getByRole('heading', { name: 'Sign in to Signpost' }).waitFor();
    await page.getByRole('link', { name: 'Sign in' }).click();
    await page.waitForURL(`${provider.issuer}/**`);
    await page.locator('input[name=login]').fill(person);
    await page.locator('input[name=password]').fill('any');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.waitForURL(`${dashboard.url}/**`);
    return page;
  }

  test('see their accounts, and change from one to the other', async () => {
    const page = await signIn('anna');
    await page.getByRole('button', { name: 'Signed in as anna@example.com' }).waitFor();
    expect(page.url()).toBe(`${dashboard.url}/team`);
    const switcher = page.getByRole('button', { name: /^Switch account/ });
    const first = await switcher.textContent();
    await switcher.click();
    const other = first?.includes('Bakery') ? 'Café' : 'Bakery';
    await page.getByRole('menuitem', { name: other }).click();
    await expect.poll(() => switcher.textContent()).toContain(other);
    await page.reload();
    await expect.poll(() => switcher.textContent()).toContain(other);
  });

  test('are asked before what they have entered is discarded with the account', async () => {
    const page = await signIn('anna');
    const switcher = page.getByRole('button', { name: /^Switch account/ });
    const choose = async (account: string) => {
      await switcher.click();
      await page.getByRole('menuitem', { name: account }).click();
    };
    await choose('Bakery');
    await page.waitForURL(`${dashboard.url}/`);
    const enter = async () => {
      await page.goto(`${dashboard.url}/codes/new`);
      await page.getByRole('textbox', { name: 'Target URL' }).fill('https://example.com/entered');
    };
    await enter();
    await choose('Café');
    const question = page.getByRole('alertdialog', { name: 'Discard what you have entered?' });
    await question.getByRole('button', { name: 'Cancel' }).press('Enter');
    await page.getByRole('button', { name: 'Create code' }).click();
    await page.waitForURL(/\/codes\/qr_/);
    await enter();
    await choose('Café');
    await question.getByRole('button', { name: 'Discard' }).press('Enter');
    await expect.poll(() => switcher.textContent()).toContain('Café');
    await page.context().close();
  });

  test('are told that they have been removed from the account that they open', async () => {
    provider.people.set('dora', { email: 'dora@example.com', email_verified: true });
    const join = async (name: string) => {
      const { accountId } = await signpost.createAccount({ name });
      const accounts = internal(signpost, AccountsService, accountId);
      const { member } = await accounts.addMember({ email: 'dora@example.com', role: Role.VIEWER });
      return () => accounts.removeMember({ id: member?.id ?? '' });
    };
    const leaveDeli = await join('Deli');
    await join('Kiosk');
    const page = await signIn('dora');
    await page.getByRole('button', { name: /^Switch account/ }).click();
    await leaveDeli();
    await page.getByRole('menuitem', { name: 'Deli' }).click();
    await page.getByText('You are no longer a member of this account.').waitFor();
    await page.context().close();
  });

  test('see that they are not members of any account', async () => {
    const page = await signIn('berta');
    await page.getByRole('heading', { name: 'You are not a member yet' }).waitFor();
  });

  test('sign in in another tab if their session ended while they entered something', async () => {
    const page = await signIn('clara');
    await page.goto(`${dashboard.url}/codes/new`);
    const url = page.getByRole('textbox', { name: 'Target URL' });
    await url.fill('https://example.com/kept');
    // Only the dashboard's: the provider still knows the person.
    await page.context().clearCookies({ name: 'signpost-session' });
    await page.getByRole('button', { name: 'Create code' }).click();
    await page.getByText('What you have entered is kept').waitFor();
    const opened = page.context().waitForEvent('page');
    await page.getByRole('link', { name: 'Sign in' }).click();
    await (await opened).waitForURL(`${dashboard.url}/codes/new`);
    const comesBack = async () => {
      await page.evaluate(() => window.dispatchEvent(new Event('visibilitychange')));
      return url.isVisible();
    };
    await expect.poll(comesBack).toBe(true);
    expect(await url.inputValue()).toBe('https://example.com/kept');
    await page.context().close();
  });

  test('sign in again to the account that was open, in which what they entered is kept', async () => {
    const page = await signIn('anna');
    const switcher = page.getByRole('button', { name: /^Switch account/ });
    // The newest account is the one that a sign-in opens otherwise.
    await switcher.click();
    await page.getByRole('menuitem', { name: 'Bakery' }).click();
    await page.waitForURL(`${dashboard.url}/`);
    await page.goto(`${dashboard.url}/codes/new`);
    const url = page.getByRole('textbox', { name: 'Target URL' });
    await url.fill('https://example.com/of-the-bakery');
    await page.context().clearCookies({ name: 'signpost-session' });
    await page.getByRole('button', { name: 'Create code' }).click();
    await page.getByText('What you have entered is kept').waitFor();
    const opened = page.context().waitForEvent('page');
    await page.getByRole('link', { name: 'Sign in' }).click();
    await (await opened).getByRole('button', { name: 'Switch account: Bakery' }).waitFor();
    const comesBack = async () => {
      await page.evaluate(() => window.dispatchEvent(new Event('visibilitychange')));
      return url.isVisible();
    };
    await expect.poll(comesBack).toBe(true);
    expect(await url.inputValue()).toBe('https://example.com/of-the-bakery');
    await page.getByRole('button', { name: 'Create code' }).click();
    await page.waitForURL(/\/codes\/qr_/);
    await page.context().close();
  });

  test('are asked to sign in again when the provider ends their session', async () => {
    const page = await signIn('anna');
    const link = page.getByRole('navigation').getByRole('link', { name: 'Codes' });
    await link.waitFor();
    const newToken = () => {
      const now = Math.floor(Date.now() / 1_000);
      return provider.sign({
        iss: provider.issuer,
        sub: 'anna',
        aud: provider.clientId,
        iat: now,
        exp: now + 60,
        jti: crypto.randomUUID(),
        events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
      });
    };
    // Sessions end that began before the second of the token.
    await expect
      .poll(
        async () => {
          const body = new URLSearchParams({ logout_token: await newToken() });
          await fetch(`${dashboard.url}/back-channel-logout`, { method: 'POST', body });
          return page.evaluate(async () => (await fetch('/session')).status);
        },
        { interval: 1_000 },
      )
      .toBe(401);
    // The page may have found out by itself.
    if (await link.isVisible()) await link.click({ timeout: 5_000 }).catch(() => undefined);
    await page.getByRole('heading', { name: 'Sign in to Signpost' }).waitFor();
  });
});
