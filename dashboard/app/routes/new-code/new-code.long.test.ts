import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { Role } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CodesService, CodeType } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { CHROMIUM } from '../../../../test/harness/browser.ts';
import { expectAccessible } from '../../accessible.fixture.ts';
import { type DashboardPages, holdCalls, startPages } from '../../pages.fixture.ts';

/** Creating codes of every type, by keyboard. */

describe.skipIf(!CHROMIUM)('a new code', () => {
  let pages: DashboardPages;
  beforeAll(async () => {
    pages = await startPages();
  });

  /** The codes with this name. */
  const named = async (name: string) =>
    (await pages.client(CodesService).listCodes({ limit: 100 })).codes.filter((code) => code.name === name);

  /** Moves on to the field with Tab, as people without a mouse do. */
  async function tabTo(page: Page, name: string): Promise<void> {
    const target = page
      .getByRole('textbox', { name })
      .or(page.getByRole('combobox', { name }))
      .or(page.getByRole('button', { name }))
      .first();
    for (let steps = 0; steps < 40; steps++) {
      if (await target.evaluate((element) => element === document.activeElement)) return;
      await page.keyboard.press('Tab');
    }
    throw new Error(`Tab does not lead to “${name}”.`);
  }

  test('is created by keyboard, in a new folder and with tags, and leads to its page', async () => {
    const page = await pages.open('/codes/new');
    await page.getByRole('img', { name: 'Preview of the code' }).waitFor();
    await tabTo(page, 'Target URL');
    await page.keyboard.type('https://example.com/menu');
    await tabTo(page, 'Name (optional)');
    await page.keyboard.type('Menu on table 4');
    await tabTo(page, 'Folder (optional)');
    await page.keyboard.type('Tables');
    await tabTo(page, 'Tags (optional)');
    await page.keyboard.type('spring,');
    await page.keyboard.type('indoors');
    await page.keyboard.press('Enter');
    await page.getByRole('listitem').filter({ hasText: 'indoors' }).waitFor();
    await tabTo(page, 'Create code');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/codes\/qr_/);
    await page.getByRole('status').getByText('Menu on table 4 was created.').waitFor();
    const [code, ...others] = await named('Menu on table 4');
    expect(others).toEqual([]);
    expect(code).toMatchObject({
      type: CodeType.DYNAMIC,
      targetUrl: 'https://example.com/menu',
      folder: { name: 'Tables' },
      tags: ['indoors', 'spring'],
    });
  });

  test('says at the field what is wrong, keeps what was typed, and moves to the field', async () => {
    const page = await pages.open('/codes/new');
    await page.getByLabel('Target URL').fill('example.com');
    await page.getByLabel('Name (optional)').fill('Kept');
    await page.getByRole('button', { name: 'Create code' }).click();
    await page.getByText('Use a complete address that begins with https:// or http://.').waitFor();
    await expect.poll(() => page.getByLabel('Target URL').evaluate((e) => e === document.activeElement)).toBe(true);
    // What only the core knows: this is a scan URL.
    await page.getByLabel('Target URL').fill(`${pages.signpost.url}/r/abcdefg`);
    await page.keyboard.press('Enter');
    await page.getByText('must not be a scan URL of this platform.').first().waitFor();
    expect(await page.getByLabel('Name (optional)').inputValue()).toBe('Kept');
    expect(await named('Kept')).toEqual([]);
  });

  test('says what is wrong with all fields together', async () => {
    const page = await pages.open('/codes/new');
    await page.getByRole('radio', { name: /^Landing page/ }).check({ force: true });
    await page.getByLabel('Heading').fill('Long');
    await page.getByLabel('Text (optional)').fill('🦀'.repeat(5_000));
    // To fill the fields of twenty links takes 15 s.
    const links = Array.from({ length: 20 }, () => ({
      label: 'Crabs',
      url: 'https://example.com/'.padEnd(2_048, 'a'),
    }));
    await page.route(/CreateLandingPageCode/, (route) => {
      const sent = route.request().postDataJSON();
      return route.continue({ postData: JSON.stringify({ ...sent, landingPage: { ...sent.landingPage, links } }) });
    });
    await page.getByRole('button', { name: 'Create code' }).click();
    await page.getByText('must have at most 60,000 bytes').waitFor();
    await page.close();
  });

  test.each([
    ['Link', 'Target URL', 'https://example.com/lost'],
    ['Landing page', 'Heading', 'Lost and found'],
    ['Wi-Fi', 'Network name (SSID)', 'Harbour'],
    ['Text', 'Text', 'Lost and found'],
  ])('of type %s is not created twice when the answer was lost', async (kind, label, content) => {
    const page = await pages.open('/codes/new');
    const name = `Lost ${kind}`;
    await page.getByRole('radio', { name: new RegExp(`^${kind}`) }).check({ force: true });
    await page.getByLabel(label, { exact: true }).fill(content);
    if (kind === 'Wi-Fi') await page.getByLabel('Password').fill('fish and chips');
    await page.getByLabel('Name (optional)').fill(name);
    await page.getByRole('combobox', { name: 'Folder' }).fill('Lost');
    // The core creates the code; the answer does not arrive.
    await page.route(
      /CodesService\/Create/,
      async (route) => {
        await route.fetch();
        await route.abort('connectionreset');
      },
      { times: 1 },
    );
    await page.getByRole('button', { name: 'Create code' }).click();
    await page.getByText('Try again without changing anything: the code will not be created twice.').waitFor();
    expect(await named(name)).toHaveLength(1);
    await page.getByRole('button', { name: 'Create code' }).click();
    await page.waitForURL(/\/codes\/qr_/);
    // A single version: it was put into its folder as it was created.
    expect(await named(name)).toMatchObject([{ folder: { name: 'Lost' }, version: 1n }]);
  });

  test('for Wi-Fi contains the network, in its colours and folder', async () => {
    const page = await pages.open('/codes/new');
    await page.getByRole('radio', { name: /^Link/ }).focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    await page.getByText('The code appears as soon as').waitFor();
    await page.getByLabel('Network name').fill('Harbour guests');
    await page.getByLabel('Password').fill('short');
    await page.getByRole('button', { name: 'Create code' }).click();
    await page.getByText('A WPA password has 8 to 63 characters').waitFor();
    await page.getByLabel('Password').fill('fish and chips');
    await page.getByRole('img', { name: 'Preview of the code' }).waitFor();
    await page.getByLabel('Modules', { exact: true }).fill('#ffd700');
    await page.getByText('The contrast is only 1.4:1.').waitFor();
    await page.getByLabel('Modules', { exact: true }).fill('#0a5f49');
    await expect.poll(() => page.getByText('The contrast is only').count()).toBe(0);
    await page.getByLabel('Name (optional)').fill('Guest network');
    await page.getByRole('combobox', { name: 'Folder' }).fill('Networks');
    await page.getByRole('button', { name: 'Create code' }).click();
    await page.waitForURL(/\/codes\/qr_/);
    expect(await named('Guest network')).toMatchObject([
      {
        type: CodeType.STATIC,
        payload: 'WIFI:T:WPA;S:Harbour guests;P:fish and chips;;',
        design: { foregroundColor: '#0a5f49' },
        folder: { name: 'Networks' },
      },
    ]);
  });

  test('with a landing page shows on the phone what the gateway will show', async () => {
    const page = await pages.open('/codes/new');
    await page.getByRole('radio', { name: /^Landing page/ }).check({ force: true });
    await page.getByLabel('Heading').fill('Fish & <chips>');
    await page.getByLabel('Text (optional)').fill('Open daily\nfrom 11:00');
    await page.getByRole('button', { name: 'Add a link' }).click();
    await page.keyboard.type('Our menu');
    await page.keyboard.press('Tab');
    await page.keyboard.type('https://example.com/menu?a=1&b=2');
    await page.getByRole('button', { name: 'Add a link' }).click();
    await page.getByRole('button', { name: 'Remove link 2' }).press('Enter');
    await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('Add a link');
    await page.getByLabel('Page background', { exact: true }).fill('#036');
    await page.getByLabel('Text colour', { exact: true }).fill('#ffcc00');
    await page.getByLabel('Name (optional)').fill('Chip shop');
    const phone = page.frameLocator('iframe').locator('main');
    await phone.getByText('Our menu').waitFor();
    const looks = (element: Element) => {
      const { font, backgroundColor, color } = getComputedStyle(document.body);
      const box = (selector: string) => {
        const { x, width, height } = element.querySelector(selector)?.getBoundingClientRect() ?? new DOMRect();
        return [x, width, height].map(Math.round);
      };
      return { html: element.innerHTML, font, backgroundColor, color, boxes: ['h1', 'p', 'a'].map(box) };
    };
    const previewed = await phone.evaluate(looks);
    await page.getByRole('button', { name: 'Create code' }).click();
    await page.waitForURL(/\/codes\/qr_/);
    const [code] = await named('Chip shop');
    const phoneContext = await page
      .context()
      .browser()
      ?.newContext({ viewport: { width: 390, height: 720 } });
    const scanned = await phoneContext?.newPage();
    await scanned?.goto(`${pages.signpost.url}/r/${code?.shortCode}`);
    expect(await scanned?.locator('main').evaluate(looks)).toEqual(previewed);
    await phoneContext?.close();
  });

  test('takes no tag from an input method before it is confirmed', async () => {
    const page = await pages.open('/codes/new');
    const tags = page.getByRole('combobox', { name: 'Tags' });
    await tags.click();
    const browser = await page.context().newCDPSession(page);
    await browser.send('Input.imeSetComposition', { text: 'すし', selectionStart: 2, selectionEnd: 2 });
    // As browsers report a key that an input method uses: here to confirm what it has made of the letters.
    const enter = { key: 'Enter', code: 'Enter', windowsVirtualKeyCode: 229 };
    await browser.send('Input.dispatchKeyEvent', { type: 'rawKeyDown', ...enter });
    await browser.send('Input.insertText', { text: '寿司' });
    expect(await tags.inputValue()).toBe('寿司');
    await tags.press('Enter');
    expect(await page.getByRole('list', { name: 'Chosen tags' }).getByRole('listitem').allTextContents()).toEqual([
      '寿司',
    ]);
    await page.close();
  });

  test('is not discarded without a question', async () => {
    const page = await pages.open('/codes/new');
    await page.getByLabel('Target URL').fill('https://example.com/typed');
    await page.getByRole('navigation').getByRole('link', { name: 'Batches' }).press('Enter');
    const question = page.getByRole('alertdialog', { name: 'Discard what you have entered?' });
    await question.getByRole('button', { name: 'Cancel' }).press('Enter');
    expect(await page.getByLabel('Target URL').inputValue()).toBe('https://example.com/typed');
    await page.close();
  });

  test('does not lead to its page once the person is elsewhere, and enters something there', async () => {
    const page = await pages.open('/codes/new');
    await page.getByLabel('Target URL').fill('https://example.com/slow');
    const answer = await holdCalls(page, /CreateCode/);
    const load = await holdCalls(page, /\/batches-[^/]*\.js$/);
    await page.getByRole('button', { name: 'Create code' }).click();
    await page.getByRole('navigation').getByRole('link', { name: 'Batches' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Discard' }).click();
    await page.waitForURL('**/batches');
    answer();
    await page.getByRole('status').getByText('was created').waitFor();
    await page.waitForTimeout(500);
    load();
    await page.getByRole('heading', { name: 'Batches', level: 1 }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/batches');
    await page.close();
  });

  test('can be changed and created again after Back from its page while that is loaded', async () => {
    const page = await pages.open('/codes/new');
    await page.getByLabel('Target URL').fill('https://example.com/back');
    const name = page.getByRole('textbox', { name: 'Name' });
    await name.fill('Before Back');
    const load = await holdCalls(page, /\/code-[^/]*\.js$/);
    await page.getByRole('button', { name: 'Create code' }).click();
    await page.waitForURL(/\/codes\/qr_/);
    await page.evaluate(() => history.back());
    await page.waitForURL('**/codes/new');
    await name.fill('After Back');
    await page.getByRole('navigation').getByRole('link', { name: 'Batches' }).press('Enter');
    await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel' }).press('Enter');
    await page.getByRole('button', { name: 'Create code' }).click();
    await page.waitForURL(/\/codes\/qr_/);
    load();
    await page.getByRole('heading', { level: 1, name: 'After Back' }).waitFor();
    expect(await named('Before Back')).toHaveLength(1);
    expect(await named('After Back')).toHaveLength(1);
    await page.close();
  });

  test('is created once if Enter is pressed twice at once, also after a try that was rejected', async () => {
    const page = await pages.open('/codes/new');
    const url = page.getByLabel('Target URL');
    await url.fill(`${pages.signpost.url}/r/abcdefg`);
    await page.getByRole('textbox', { name: 'Name' }).fill('Pressed twice');
    await page.keyboard.press('Enter');
    await page.getByText('must not be a scan URL of this platform.').first().waitFor();
    await url.fill('https://example.com/twice');
    const calls = vi.fn();
    page.on('request', (request) => request.url().endsWith('/CreateCode') && calls());
    await Promise.all([page.keyboard.press('Enter'), page.keyboard.press('Enter')]);
    await page.getByRole('heading', { level: 1, name: 'Pressed twice' }).waitFor();
    expect(calls).toHaveBeenCalledOnce();
    expect(await named('Pressed twice')).toHaveLength(1);
    await page.close();
  });

  test('is created as it was sent; what is typed meanwhile is kept, and the page says so', async () => {
    const page = await pages.open('/codes/new');
    await page.getByLabel('Target URL').fill('https://example.com/sent');
    const name = page.getByRole('textbox', { name: 'Name' });
    await name.fill('Sent');
    const answer = await holdCalls(page, /CreateCode/);
    await page.getByRole('button', { name: 'Create code' }).click();
    await name.fill('Typed meanwhile');
    answer();
    await page.getByText('What you have entered since then is not part of Sent, and still here.').waitFor();
    expect(await name.inputValue()).toBe('Typed meanwhile');
    expect(await named('Sent')).toHaveLength(1);
    await page.getByRole('button', { name: 'Create code' }).click();
    await page.getByRole('heading', { level: 1, name: 'Typed meanwhile' }).waitFor();
    expect(await named('Typed meanwhile')).toHaveLength(1);
    await page.close();
  });

  test('takes a tag from the list as it is, also with a comma', async () => {
    await pages.client(CodesService).createCode({ targetUrl: 'https://example.com/', tags: ['Berlin, Mitte'] });
    const page = await pages.open('/codes/new');
    const tags = page.getByRole('combobox', { name: 'Tags' });
    await tags.fill('Berl');
    // Until the names are loaded there is no list to open.
    const option = async () => {
      await tags.press('ArrowDown');
      return tags.getAttribute('aria-activedescendant');
    };
    await expect.poll(option).toContain('Berlin');
    await tags.press('Enter');
    // While the list of further tags is open, everything else is hidden from screen readers.
    const chosen = page.getByRole('list', { name: 'Chosen tags', includeHidden: true });
    await expect.poll(() => chosen.allTextContents()).toEqual(['Berlin, Mitte']);
    await page.close();
  });

  test('keeps the focus at the tags when one is removed', async () => {
    const page = await pages.open('/codes/new');
    const tags = page.getByRole('combobox', { name: 'Tags' });
    await tags.fill('indoor,outdoor,');
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label'));
    await page.getByRole('button', { name: 'Remove the tag “indoor”' }).press('Enter');
    await expect.poll(focused).toBe('Remove the tag “outdoor”');
    await page.keyboard.press('Enter');
    await expect.poll(() => tags.evaluate((field) => field === document.activeElement)).toBe(true);
    await page.close();
  });

  test('cannot be made by a viewer', async () => {
    const page = await pages.open('/codes/new', { role: Role.VIEWER });
    await page.getByText('Your role does not allow this.').waitFor();
    expect(await page.getByRole('button', { name: 'Create code' }).count()).toBe(0);
  });

  test('speaks German', async () => {
    const page = await pages.open('/codes/new', { context: { locale: 'de-DE' } });
    await page.getByRole('heading', { name: 'Neuer Code', level: 1 }).waitFor();
    await page.getByLabel('Ziel-URL').fill('beispiel.de');
    await page.getByRole('button', { name: 'Code anlegen' }).click();
    await page.getByText('Bitte geben Sie die vollständige Adresse ein').waitFor();
  });

  test.each(['Link', 'Landing page', 'Wi-Fi', 'Text'])('is accessible with the fields of: %s', async (kind) => {
    const page = await pages.open('/codes/new');
    await page.getByRole('radio', { name: new RegExp(`^${kind}`) }).check({ force: true });
    await page.getByRole('button', { name: 'Create code' }).click();
    await expect.poll(() => page.locator('[aria-invalid="true"]').count()).toBeGreaterThan(0);
    await expectAccessible(page, { isVariant: kind !== 'Link' });
  });
});
