import type { Locator } from 'playwright-core';
import { beforeAll, describe, expect, onTestFailed, test } from 'vitest';
import { AccountsService, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { internal } from '../../test/contract/internal.ts';
import { CHROMIUM } from '../../test/harness/browser.ts';
import { shell } from './messages/en/shell.ts';
import { comeBack, type DashboardPages, holdCalls, startPages } from './pages.fixture.ts';

/** The frame around the pages: navigation, search, language, theme. */

/** The member whom `pages.open` adds for this role; the dialog of another test adds another editor. */
const EDITOR = 'editor@harbour.example';

describe.skipIf(!CHROMIUM)('the frame', () => {
  let pages: DashboardPages;
  beforeAll(async () => {
    pages = await startPages({ gateways: 0 });
  });

  test('leads to every page', async () => {
    const page = await pages.open('/');
    const links = page.getByRole('navigation').getByRole('link');
    await links.first().waitFor();
    const names = await links.allTextContents();
    expect(names).toEqual(Object.values(shell.nav));
    for (const name of names) {
      await links.filter({ hasText: name }).click();
      await expect.poll(() => page.title()).toBe(`${name} · Signpost`);
      expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe(name);
    }
  });

  test('opens a page by typing', async () => {
    const page = await pages.open('/');
    await page.getByRole('navigation').waitFor();
    // Keys are listened to a moment after the navigation is seen.
    const open = async () => {
      await page.keyboard.press('Control+k');
      // The same keys would close it again.
      return page
        .getByRole('searchbox')
        .waitFor({ timeout: 5_000 })
        .then(
          () => true,
          () => false,
        );
    };
    await expect.poll(open).toBe(true);
    await page.keyboard.type('webho');
    // A page that is focused before the list is filtered may be gone when Enter is pressed.
    await expect.poll(() => page.getByRole('option').allTextContents()).toEqual(['Webhooks']);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/webhooks');
    await page.route(/ListCodes/, (route) =>
      route.fulfill({ status: 500, json: { code: 'internal', message: 'No.' } }),
    );
    await page.keyboard.press('Control+k');
    await page.keyboard.type('poster');
    await page.getByRole('alert').getByText('No.').waitFor();
    expect(await page.getByText('Nothing matches.').count()).toBe(0);
  });

  test('opens no code that an earlier text has found', async () => {
    const codes = pages.client(CodesService);
    await codes.createCode({ targetUrl: 'https://example.com/', name: 'Harbour poster' });
    const { code } = await codes.createCode({ targetUrl: 'https://example.com/', name: 'Garden sign' });
    const page = await pages.open('/');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('searchbox').fill('Harbour p');
    await page.getByRole('option', { name: /Harbour poster/ }).waitFor();
    const answer = await holdCalls(page, /ListCodes/);
    await page.getByRole('searchbox').fill('Garden');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForTimeout(500);
    expect(new URL(page.url()).pathname).toBe('/');
    expect(await page.getByRole('searchbox').isVisible()).toBe(true);
    answer();
    await page.getByRole('option', { name: /Garden sign/ }).waitFor();
    await page.getByRole('searchbox').press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/codes/${code?.id}`);
    await page.close();
  });

  test('speaks German where the browser does, and remembers a choice', async () => {
    const page = await pages.open('/codes', { context: { locale: 'de-DE' } });
    await expect.poll(() => page.locator('html').getAttribute('lang')).toBe('de');
    await page.getByRole('navigation').getByRole('link', { name: 'Übersicht' }).waitFor();
    await page.getByRole('button', { name: 'Angemeldet als owner@harbour.example' }).click();
    await page.getByRole('menuitem', { name: 'English' }).click();
    await page.getByRole('navigation').getByRole('link', { name: 'Overview' }).waitFor();
    await page.reload();
    await page.getByRole('navigation').getByRole('link', { name: 'Overview' }).waitFor();
  });

  test('has the theme that was chosen', async () => {
    const page = await pages.open('/');
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    expect(await background()).toBe('rgb(253, 253, 251)');
    await page.getByRole('button', { name: 'Signed in as' }).click();
    await page.getByRole('menuitem', { name: 'Dark' }).click();
    await expect.poll(background).toBe('rgb(20, 20, 18)');
    await page.emulateMedia({ media: 'print' });
    await expect.poll(background).toBe('rgb(253, 253, 251)');
    expect(await page.getByRole('navigation').isVisible()).toBe(false);
  });

  test('shows the current page with forced colours', async () => {
    const page = await pages.open('/');
    const link = page.getByRole('navigation').getByRole('link', { name: 'Overview' });
    await link.waitFor();
    await page.emulateMedia({ forcedColors: 'active' });
    expect(await link.evaluate((element) => getComputedStyle(element).outlineStyle)).toBe('solid');
    await page.close();
  });

  test('says that Signpost is unavailable while no core answers, and shows pages when one does', async () => {
    const page = await pages.open('/codes');
    await page.getByRole('heading', { level: 1, name: 'Codes' }).waitFor();
    // Some pages load the domains too: then they would be shown without the core.
    const other = await pages.open('/team');
    await other.getByRole('heading', { level: 1, name: 'Team' }).waitFor();
    const [core] = pages.signpost.cores;
    const places = await page.getByRole('status').elementHandles();
    onTestFailed(() => core?.restart());
    await core?.kill();
    await page.getByRole('navigation').getByRole('link', { name: 'Batches' }).click();
    await other.getByRole('navigation').getByRole('link', { name: 'Domains' }).click();
    await page.getByText('Signpost is unavailable at the moment').first().waitFor();
    const texts = await Promise.all(places.map((place) => place.textContent()));
    expect(texts.join(), 'read aloud').toContain('Signpost is unavailable at the moment');
    // The pages have given up for now.
    for (const each of [page, other]) await each.getByRole('button', { name: 'Try again' }).waitFor();
    await core?.restart();
    await page.getByRole('link', { name: 'New batch' }).first().waitFor();
    await other.getByRole('button', { name: 'Add a domain' }).first().waitFor();
    await expect.poll(() => page.getByText('Signpost is unavailable').isVisible()).toBe(false);
  });

  test('says so too if no core answers when it is opened, and shows the page when one does', async () => {
    const known = await pages.open('/codes', { context: { locale: 'de-AT' } });
    await known.close();
    const [core] = pages.signpost.cores;
    onTestFailed(() => core?.restart());
    await core?.kill();
    const page = await pages.open('/codes', { context: { locale: 'de-AT' } });
    await page.getByText('Signpost ist gerade nicht erreichbar. Bitte versuchen Sie es gleich noch einmal.').waitFor();
    await core?.restart();
    const title = page.getByRole('heading', { level: 1, name: 'Codes' });
    const shown = async () => {
      const retry = page.getByRole('button', { name: 'Erneut versuchen' });
      // It may be gone by the time it is clicked.
      if (await retry.isVisible()) await retry.click({ timeout: 1_000 }).catch(() => undefined);
      return title.isVisible();
    };
    await expect.poll(shown, { interval: 500 }).toBe(true);
    await page.close();
  });

  test('loads the page anew if a file of it is gone', async () => {
    const page = await pages.open('/');
    await page.route(/\/assets\/.*\.css/, (route) => route.fulfill({ status: 404 }));
    await page.getByRole('navigation').getByRole('link', { name: 'Webhooks' }).click();
    await page.getByText('Signpost is unavailable at the moment. Try again shortly.').waitFor();
    await page.unroute(/\/assets\/.*\.css/);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'No endpoints yet' }).waitFor();
    await page.close();
  });

  test('does so too if the texts of the pages are gone, and asks for them once', async () => {
    const page = await pages.open('/');
    let requests = 0;
    await page.route(/\/assets\/en-.*\.js/, (route) => {
      requests += 1;
      return route.fulfill({ status: 404 });
    });
    await page.getByRole('navigation').getByRole('link', { name: 'Webhooks' }).focus();
    await page.keyboard.press('Enter');
    await page.getByText('Signpost is unavailable at the moment. Try again shortly.').waitFor();
    expect(requests).toBeLessThanOrEqual(2);
    await page.unroute(/\/assets\/en-.*\.js/);
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('heading', { name: 'No endpoints yet' }).waitFor();
    await page.close();
  });

  test('says in both languages if the texts of the first page cannot be loaded', async () => {
    const page = await pages.open('/');
    await page.route(/\/assets\/first-.*\.js/, (route) => route.abort());
    await page.reload();
    await page.getByText('Signpost could not be loaded.').waitFor();
    await page.getByText('Signpost konnte nicht geladen werden.').waitFor();
    await page.unrouteAll();
    await page.getByRole('button', { name: 'Reload' }).click();
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.close();
  });

  test('keeps the page with what was entered if a file of the search or of a language is gone', async () => {
    const page = await pages.open('/codes/new');
    const name = page.getByRole('textbox', { name: 'Name' });
    await name.fill('Kept');
    await page.route(/\/assets\/(palette|de)-.*\.js/, (route) => route.fulfill({ status: 404 }));
    const failed = page.getByRole('status').getByText('Signpost is unavailable at the moment. Try again shortly.');
    await page.keyboard.press('Control+k');
    await failed.waitFor();
    await page.getByRole('button', { name: 'Signed in as' }).click();
    await page.getByRole('menuitem', { name: 'Deutsch' }).click();
    await expect.poll(() => failed.count()).toBe(2);
    expect(await name.inputValue()).toBe('Kept');
    await page.close();
  });

  test('says so while the browser is offline, and makes no change later that failed then', async () => {
    const page = await pages.open('/team', { context: { locale: 'en-IE' } });
    await page.getByRole('button', { name: 'Add a member' }).click();
    const email = page.getByRole('dialog').getByRole('textbox', { name: 'E-mail address' });
    await email.fill('offline@harbour.example');
    await page.context().setOffline(true);
    await email.press('Enter');
    await page.getByRole('dialog').getByText('Signpost is unavailable at the moment. Try again shortly.').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.context().setOffline(false);
    // As calls that waited for the connection would do.
    await page.waitForTimeout(1_000);
    const { members } = await pages.client(AccountsService).listMembers({});
    expect(members.map(({ email }) => email)).not.toContain('offline@harbour.example');
    await page.context().close();
  });

  test('reads what it shows again once the browser is online', async () => {
    const page = await pages.open('/team', { context: { locale: 'en-IE', viewport: { width: 1000, height: 800 } } });
    await page.getByRole('row', { name: /owner@harbour.example/ }).waitFor();
    await page.context().setOffline(true);
    // What has been read a moment ago is not read again.
    await page.evaluate(() => {
      const now = Date.now;
      Date.now = () => now() + 60_000;
    });
    await pages.client(AccountsService).addMember({ email: 'meanwhile@harbour.example', role: Role.VIEWER });
    await page.context().setOffline(false);
    await page.getByRole('row', { name: /meanwhile@harbour.example/ }).waitFor();
    await page.context().close();
  });

  test('once another account is open, a page of the previous one changes nothing, and is loaded anew', async () => {
    const { accountId } = await pages.signpost.createAccount({ name: 'Other Kitchens' });
    const others = internal(pages.signpost, AccountsService, accountId);
    await others.addMember({ email: 'owner@harbour.example', role: Role.OWNER });
    const page = await pages.open('/team');
    const name = page.getByRole('textbox', { name: 'Name of the account' });
    await name.waitFor();
    const { token } = await others.createSignInLink({ email: 'owner@harbour.example' });
    const other = await pages.open(`/sign-in/link#${token}`);
    await other.getByRole('button').click();
    await other.getByRole('banner').getByText('Other Kitchens').waitFor();
    await name.fill('Misplaced');
    await name.press('Enter');
    await page.getByRole('banner').getByText('Other Kitchens').waitFor();
    expect((await others.getAccount({})).account?.name).toBe('Other Kitchens');
    await Promise.all([page.close(), other.close()]);
  });

  test('says so if it cannot sign out or copy', async () => {
    const page = await pages.open('/api');
    await page.evaluate(() => {
      navigator.clipboard.writeText = () => Promise.reject(new DOMException('no', 'NotAllowedError'));
    });
    await page.getByRole('button', { name: 'Copy the call' }).click();
    await page
      .getByRole('status')
      .getByText(/^Copy the call: curl/)
      .waitFor();
    await page.route('**/session', (route) => route.fulfill({ status: 503, json: { error: 'x' } }));
    await page.getByRole('button', { name: 'Signed in as' }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByText('Signpost is unavailable at the moment.').waitFor();
    await page.close();
  });

  test('keeps what was entered when the session ends, until the person has signed in in another tab', async () => {
    const page = await pages.open('/codes/new', { context: { locale: 'en-AU' } });
    await page.getByRole('textbox', { name: 'Target URL' }).fill('https://example.com/kept');
    await page.getByRole('textbox', { name: 'Name' }).fill('Kept');
    await page.context().clearCookies();
    await page.getByRole('button', { name: 'Create code' }).click();
    await page.getByRole('heading', { name: 'Sign in to Signpost' }).waitFor();
    await page.getByText('What you have entered is kept').waitFor();
    // The page below rests, and is not there for anybody.
    expect(await page.getByRole('navigation').count()).toBe(0);
    const { token } = await pages.client(AccountsService).createSignInLink({ email: 'owner@harbour.example' });
    const other = await page.context().newPage();
    await other.goto(`${pages.dashboard.url}/sign-in/link#${token}`);
    await other.getByRole('button').click();
    await other.waitForURL(`${pages.dashboard.url}/`);
    const name = page.getByRole('textbox', { name: 'Name' });
    const comesBack = async () => {
      await page.evaluate(() => window.dispatchEvent(new Event('visibilitychange')));
      return name.isVisible();
    };
    await expect.poll(comesBack).toBe(true);
    expect(await name.inputValue()).toBe('Kept');
    await page.getByRole('button', { name: 'Create code' }).click();
    await page.getByRole('heading', { level: 1, name: 'Kept' }).waitFor();
    await page.context().close();
  });

  test('asks before what is kept for the next sign-in is left, but not if another person has signed in', async () => {
    const page = await pages.open('/codes', { context: { locale: 'en-IN' } });
    let questions = 0;
    page.on('dialog', (dialog) => {
      questions += 1;
      return dialog.accept();
    });
    await page.getByRole('link', { name: 'New code' }).click();
    const name = page.getByRole('textbox', { name: 'Name' });
    await page.getByRole('textbox', { name: 'Target URL' }).fill('https://example.com/kept');
    await name.fill('Kept');
    const lose = async () => {
      await page.context().clearCookies();
      await page.getByRole('button', { name: 'Create code' }).click();
      await page.getByText('What you have entered is kept').waitFor();
    };
    const signIn = async (email: string) => {
      const { token } = await pages.client(AccountsService).createSignInLink({ email });
      const other = await page.context().newPage();
      await other.goto(`${pages.dashboard.url}/sign-in/link#${token}`);
      await other.getByRole('button').click();
      await other.waitForURL(`${pages.dashboard.url}/`);
      await other.close();
    };
    const comesBack = (shown: Locator) =>
      expect
        .poll(async () => {
          await page.evaluate(() => window.dispatchEvent(new Event('visibilitychange'))).catch(() => undefined);
          return shown.isVisible();
        })
        .toBe(true);
    await lose();
    await page.evaluate(() => history.back());
    const question = page.getByRole('alertdialog', { name: 'Discard what you have entered?' });
    await question.getByRole('button', { name: 'Cancel' }).press('Enter');
    await question.waitFor({ state: 'detached' });
    expect(
      await page.evaluate(() => window.dispatchEvent(new Event('beforeunload', { cancelable: true }))),
      'closed without a question',
    ).toBe(false);
    await signIn('owner@harbour.example');
    await comesBack(name);
    expect(await name.inputValue()).toBe('Kept');
    await lose();
    await pages.client(AccountsService).addMember({ email: 'third@harbour.example', role: Role.VIEWER });
    await signIn('third@harbour.example');
    await comesBack(page.getByRole('button', { name: 'Signed in as third@harbour.example' }));
    expect(questions).toBe(0);
    await page.context().close();
  });

  test('discards what is kept for the next sign-in if the person agrees', async () => {
    const page = await pages.open('/codes', { context: { locale: 'en-IL' } });
    await page.getByRole('link', { name: 'New code' }).click();
    await page.getByRole('textbox', { name: 'Target URL' }).fill('https://example.com/discarded');
    await page.context().clearCookies();
    await page.getByRole('button', { name: 'Create code' }).click();
    const kept = page.getByText('What you have entered is kept');
    await kept.waitFor();
    await page.evaluate(() => history.back());
    await page.getByRole('alertdialog').getByRole('button', { name: 'Discard' }).press('Enter');
    await page.waitForURL(`${pages.dashboard.url}/codes`);
    await kept.waitFor({ state: 'detached' });
    await page.context().close();
  });

  test('keeps a dialog with what was typed too, and reads aloud that the session has ended', async () => {
    const page = await pages.open('/team', { context: { locale: 'en-ZA' } });
    await page.getByRole('button', { name: 'Add a member' }).click();
    const email = page.getByRole('dialog').getByRole('textbox', { name: 'E-mail address' });
    await email.fill('kept@harbour.example');
    await page.context().clearCookies();
    await email.press('Enter');
    await page.getByText('What you have entered is kept').waitFor();
    await expect.poll(() => page.title()).toBe('Sign in to Signpost');
    await expect.poll(() => page.evaluate(() => document.activeElement?.tagName)).toBe('MAIN');
    await page.context().close();
  });

  test('closes a dialog whose call has ended after the session', async () => {
    const page = await pages.open('/team', { context: { locale: 'en-BZ' } });
    const ended = Promise.withResolvers<void>();
    await page.route(/AddMember/, async (route) => {
      const response = await route.fetch();
      await ended.promise;
      await route.fulfill({ response });
    });
    await page.getByRole('button', { name: 'Add a member' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'E-mail address' }).fill('added@harbour.example');
    // Waits until the button is enabled, and so until the text has arrived.
    const add = dialog.getByRole('button', { name: 'Add', exact: true });
    await Promise.all([page.waitForRequest(/AddMember/), add.click()]);
    const accounts = pages.client(AccountsService);
    const isAdded = async () =>
      (await accounts.listMembers({})).members.some(({ email }) => email.startsWith('added@'));
    await expect.poll(isAdded).toBe(true);
    await page.context().clearCookies();
    await comeBack(page);
    await page.getByRole('heading', { name: 'Sign in to Signpost' }).waitFor();
    await Promise.all([page.waitForResponse(/AddMember/), ended.resolve()]);
    const { token } = await accounts.createSignInLink({ email: 'owner@harbour.example' });
    const other = await page.context().newPage();
    await other.goto(`${pages.dashboard.url}/sign-in/link#${token}`);
    await other.getByRole('button').click();
    await other.waitForURL(`${pages.dashboard.url}/`);
    await comeBack(page);
    await page.getByRole('row').filter({ hasText: 'added@harbour.example' }).waitFor();
    expect(await dialog.count()).toBe(0);
    await page.context().close();
  });

  test('is opened anew once another person of the account has signed in', async () => {
    const page = await pages.open('/codes', { context: { locale: 'en-NZ' } });
    await page.getByRole('button', { name: 'Signed in as owner@harbour.example' }).waitFor();
    await pages.client(AccountsService).addMember({ email: 'second@harbour.example', role: Role.VIEWER });
    const { token } = await pages.client(AccountsService).createSignInLink({ email: 'second@harbour.example' });
    const other = await page.context().newPage();
    await other.goto(`${pages.dashboard.url}/sign-in/link#${token}`);
    await other.getByRole('button').click();
    await other.waitForURL(`${pages.dashboard.url}/`);
    await comeBack(page);
    await page.waitForURL(`${pages.dashboard.url}/`);
    await page.getByRole('button', { name: 'Signed in as second@harbour.example' }).waitFor();
    await page.context().close();
  });

  test('changes nothing as another person of the account who has signed in, and is opened anew', async () => {
    const page = await pages.open('/team', { context: { locale: 'en-CA' } });
    const name = page.getByRole('textbox', { name: 'Name of the account' });
    await name.waitFor();
    const accounts = pages.client(AccountsService);
    await accounts.addMember({ email: 'partner@harbour.example', role: Role.OWNER });
    const { token } = await accounts.createSignInLink({ email: 'partner@harbour.example' });
    const other = await page.context().newPage();
    await other.goto(`${pages.dashboard.url}/sign-in/link#${token}`);
    await other.getByRole('button').click();
    await other.waitForURL(`${pages.dashboard.url}/`);
    await name.fill('Renamed as another person');
    await name.press('Enter');
    await page.getByRole('button', { name: 'Signed in as partner@harbour.example' }).waitFor();
    expect((await accounts.getAccount({})).account?.name).toBe('Harbour Kitchens');
    await page.context().close();
  });

  test('reads its session again if Back shows it as the browser kept it', async () => {
    const page = await pages.open('/team', { context: { locale: 'en-SG' } });
    const name = page.getByRole('textbox', { name: 'Name of the account' });
    await name.fill('Still here');
    const restore = () =>
      page.evaluate(() => window.dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })));
    const read = page.waitForResponse('**/session');
    await restore();
    await read;
    expect(await name.inputValue()).toBe('Still here');
    await page.context().clearCookies();
    await restore();
    await page.getByRole('heading', { name: 'Sign in to Signpost' }).waitFor();
    await page.context().close();
  });

  test('shows what a lowered role allows as soon as a call fails, and keeps what is being entered', async () => {
    const accounts = pages.client(AccountsService);
    const code = await pages.client(CodesService).createCode({ targetUrl: 'https://example.com/', name: 'Lowered' });
    const page = await pages.open(`/codes/${code.code?.id}`, { role: Role.EDITOR });
    const other = await page.context().newPage();
    await other.goto(`${pages.dashboard.url}/codes/new`);
    const url = other.getByRole('textbox', { name: 'Target URL' });
    await url.fill('https://example.com/lowered');
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    const { members } = await accounts.listMembers({});
    const id = members.find(({ email }) => email === EDITOR)?.id ?? '';
    await accounts.updateMember({ id, role: Role.VIEWER });
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('It takes the role “Editor”.').waitFor();
    await page.getByRole('button', { name: 'Pause' }).waitFor({ state: 'detached' });
    await other.getByRole('button', { name: 'Create code' }).click();
    await other.getByText('It takes the role “Editor”.').waitFor();
    await other.getByText('Viewer').first().waitFor();
    expect(await url.inputValue()).toBe('https://example.com/lowered');
    await accounts.updateMember({ id, role: Role.EDITOR });
    await other.getByRole('button', { name: 'Create code' }).click();
    await other.waitForURL(/\/codes\/qr_/);
    await Promise.all([page.close(), other.close()]);
  });

  test('is closed to a person who has been removed from the account', async () => {
    const page = await pages.open('/codes/new', { role: Role.EDITOR });
    await page.getByRole('textbox', { name: 'Target URL' }).fill('https://example.com/removed');
    const accounts = pages.client(AccountsService);
    const { members } = await accounts.listMembers({});
    await accounts.removeMember({ id: members.find(({ email }) => email === EDITOR)?.id ?? '' });
    await page.getByRole('button', { name: 'Create code' }).click();
    await page.getByRole('heading', { name: 'Sign in to Signpost' }).waitFor();
    await page.context().close();
  });

  test('is entered with another link in the tab of one that failed, or that was not used', async () => {
    const page = await pages.open('/sign-in/link#made-up');
    await page.getByRole('button').click();
    await page.getByRole('heading', { name: 'This link does not work' }).waitFor();
    for (const before of [undefined, '/sign-in/link#made-up']) {
      const { token } = await pages.client(AccountsService).createSignInLink({ email: 'owner@harbour.example' });
      if (before !== undefined) await page.goto(`${pages.dashboard.url}${before}`);
      await page.goto(`${pages.dashboard.url}/sign-in/link#${token}`);
      await page.getByRole('button').click();
      await page.waitForURL(`${pages.dashboard.url}/`);
    }
    await page.close();
  });

  test('closes the navigation of a phone with a link to the page that is shown', async () => {
    const page = await pages.open('/codes?state=deleted', { context: { viewport: { width: 390, height: 800 } } });
    for (const search of ['?state=deleted', '']) {
      await page.waitForURL(`**/codes${search}`);
      await page.getByRole('button', { name: 'Open navigation' }).click();
      const drawer = page.getByRole('dialog');
      await drawer.getByRole('link', { name: 'Codes' }).click();
      await drawer.waitFor({ state: 'detached' });
    }
    await page.waitForURL('**/codes');
    await page.close();
  });

  test('signs out', async () => {
    const page = await pages.open('/', { context: { viewport: { width: 390, height: 800 } } });
    await page.getByRole('button', { name: 'Open navigation' }).click();
    await page.getByRole('button', { name: 'Signed in as' }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in to Signpost' }).waitFor();
    // In another tab the person signs in again.
    const accounts = pages.client(AccountsService);
    const { token } = await accounts.createSignInLink({ email: 'owner@harbour.example' });
    const other = await page.context().newPage();
    await other.goto(`${pages.dashboard.url}/sign-in/link#${token}`);
    await other.getByRole('button').click();
    await other.waitForURL(`${pages.dashboard.url}/`);
    // What was asked less than a second ago is not asked again.
    const comesBack = async () => {
      await page.evaluate(() => window.dispatchEvent(new Event('visibilitychange')));
      return page.getByRole('button', { name: 'Open navigation' }).isVisible();
    };
    await expect.poll(comesBack).toBe(true);
    await page.context().close();
  });
});
