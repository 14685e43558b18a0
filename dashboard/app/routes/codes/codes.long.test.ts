import { readFile } from 'node:fs/promises';
import { Pool } from 'pg';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { decodeId, encodeId, newUuid } from '../../../../common/contract/ids.ts';
import { AccountsService, Plan, Role } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CodeState, CodesService } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { TargetsService } from '../../../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { CHROMIUM } from '../../../../test/harness/browser.ts';
import { comeBack, type DashboardPages, holdCalls, startPages } from '../../pages.fixture.ts';

/** The page of codes: its list of any length, its filters, and changes of many codes at once. */

const NAMES = ['Window poster', 'Voucher', 'Lunch menu', 'Dinner menu'];

/** More than one call of UpdateCodes takes. */
const PAUSED = 1_100;

describe.skipIf(!CHROMIUM)('the page of codes', () => {
  let pages: DashboardPages;
  beforeAll(async () => {
    // New targets are set in the background.
    pages = await startPages({ gateways: 0, env: { BATCH_WINDOW_MS: '0' } });
    const codes = pages.client(CodesService);
    for (const name of NAMES) {
      await codes.createCode({
        targetUrl: `https://example.com/${name.length}`,
        name,
        tags: [name.split(' ').at(-1) ?? ''],
      });
    }
  });

  const codeOf = async (name: string) => {
    const { codes } = await pages.client(CodesService).listCodes({ search: name });
    const [code] = codes;
    if (!code) throw new Error(`there is no code ${name}`);
    return code;
  };

  /** Inserts codes, which no call could create so fast. */
  const insertCodes = async (count: number, paused = false) => {
    const account = decodeId('acct', pages.account);
    const pool = new Pool({ connectionString: pages.signpost.databaseUrl, max: 1 });
    const CHUNK = 100_000;
    for (let left = count; left > 0; left -= CHUNK) {
      await pool.query(
        `insert into codes (id, account_id, type, short_code, target_url, name, paused)
         select id, $1::uuid, 'dynamic', substr(md5(id::text), 1, 14), 'https://example.com/' || n, 'Code ' || n, $3
         from unnest($2::uuid[]) with ordinality as t (id, n)`,
        [account, Array.from({ length: Math.min(left, CHUNK) }, newUuid), paused],
      );
    }
    await pool.query('update code_counts set listed = listed + $2, live = live + $2 where account_id = $1', [
      account,
      count,
    ]);
    await pool.query('analyze codes');
    await pool.end();
  };

  const openPaused = async () => {
    const page = await pages.open('/codes?state=paused');
    await page.locator(`[role=grid][aria-rowcount="${PAUSED + 1}"]`).waitFor();
    return page;
  };
  const pausedNow = async () => Number((await pages.client(CodesService).listCodes({ state: CodeState.PAUSED })).total);

  /** Shows as many messages as there is room for, which offer nothing to do. */
  const fillMessages = async (page: Page) => {
    await page.evaluate(() => {
      navigator.clipboard.writeText = () => Promise.reject(new Error('refused'));
    });
    for (let messages = 0; messages < 3; messages++) await page.getByRole('button', { name: /^Copy/ }).first().click();
    await page
      .getByText(/^Copy scan URL, .*: http/)
      .nth(1)
      .waitFor();
  };

  test('files, pauses and restores codes by keyboard', async () => {
    const page = await pages.open('/codes');
    const list = page.getByRole('grid', { name: 'Codes' });
    await list.focus();
    // Newest first: the menus.
    await page.keyboard.press('Space');
    await page.keyboard.press('Shift+ArrowDown');
    await page.getByText('2 codes selected').waitFor();
    await page.getByRole('button', { name: 'Move to folder' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('searchbox', { name: 'Find: Move to folder' }).waitFor();
    await page.keyboard.type('Menus');
    await page.getByRole('option', { name: 'Create “Menus”' }).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByText('2 codes changed.').waitFor();
    expect((await codeOf('Dinner menu')).folder?.name).toBe('Menus');
    expect((await codeOf('Lunch menu')).folder?.name).toBe('Menus');

    await page.getByRole('button', { name: 'Undo' }).focus();
    await page.keyboard.press('Enter');
    await expect.poll(async () => (await codeOf('Dinner menu')).folder).toBeUndefined();

    await list.focus();
    await page.keyboard.press('Control+a');
    await page.getByText('4 codes selected').waitFor();
    await page.getByRole('button', { name: 'Delete' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('alertdialog', { name: 'Delete 4 codes?' }).waitFor();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'No codes yet' }).waitFor();

    await page.goto(`${pages.dashboard.url}/codes?state=deleted`);
    await page.getByText('Window poster').waitFor();
    await list.focus();
    await page.keyboard.press('Control+a');
    await page.getByRole('button', { name: 'Restore' }).focus();
    await page.keyboard.press('Enter');
    await page.getByText('4 codes changed.').waitFor();
    const { total } = await pages.client(CodesService).listCodes({ state: CodeState.ACTIVE });
    expect(total).toBe(4n);
  });

  test('retargets what matches the filters, and takes it back', async () => {
    const page = await pages.open('/codes?q=menu');
    await page.getByText('2 codes').first().waitFor();
    await page.getByRole('checkbox', { name: 'Select all codes that match' }).focus();
    await page.keyboard.press('Space');
    await page.getByRole('button', { name: 'Change target' }).focus();
    await page.keyboard.press('Enter');
    await page.keyboard.type('example.com/menus');
    await page.keyboard.press('Enter');
    await page.getByText('Use a complete address that begins with https:// or http://.').waitFor();
    await page.getByRole('textbox', { name: 'New target' }).fill('https://me:secret@example.com/menus');
    await page.keyboard.press('Enter');
    await page.getByText('The address must not contain a user name or password.').waitFor();
    await page.getByRole('textbox', { name: 'New target' }).fill('https://example.com/menus');
    await page.keyboard.press('Enter');
    await page.getByText('2 codes changed.').waitFor();
    expect((await codeOf('Lunch menu')).targetUrl).toBe('https://example.com/menus');
    expect((await codeOf('Voucher')).targetUrl).toBe('https://example.com/7');
    // Messages with something to do, and those that are pointed at, stay.
    await fillMessages(page);
    await page.getByRole('button', { name: 'Undo' }).hover();
    await page.getByRole('grid', { name: 'Codes' }).press('Enter');
    await page.getByRole('link', { name: 'Open the code' }).press('Enter');
    await page.getByRole('link', { name: 'https://example.com/menus' }).waitFor();
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await page.getByRole('link', { name: 'https://example.com/11' }).waitFor();
    await page.getByText('Version 2', { exact: true }).waitFor();
    expect((await codeOf('Lunch menu')).targetUrl).toBe('https://example.com/10');
    const { versions } = await pages.client(TargetsService).listTargetVersions({ id: (await codeOf('Lunch menu')).id });
    expect(versions.map(({ version }) => version)).toEqual([3, 2, 1]);
  });

  test('tells that static codes have no target, and offers no folder with a reserved name', async () => {
    const codes = pages.client(CodesService);
    const { code } = await codes.createStaticCode({
      content: { case: 'payload', value: 'Closed on Mondays' },
      name: 'Plain text',
    });
    const page = await pages.open('/codes?q=plain');
    await page.getByRole('grid', { name: 'Codes' }).press('Control+a');
    await page.getByRole('button', { name: 'Change target' }).press('Enter');
    await page.getByRole('textbox', { name: 'New target' }).fill('https://example.com/plain');
    await page.keyboard.press('Enter');
    await page.getByText('1 code has no target that could be changed.').waitFor();

    await page.getByRole('grid', { name: 'Codes' }).press('Control+a');
    await page.getByRole('button', { name: 'Move to folder' }).press('Enter');
    await page.keyboard.type('Non');
    await page.getByRole('option', { name: 'Create “Non”' }).waitFor();
    await page.keyboard.type('e');
    await expect.poll(() => page.getByRole('option', { name: /^Create/ }).count()).toBe(0);
    await codes.deleteCode({ id: code?.id ?? '' });
  });

  test('tells which codes an undo could not change back', async () => {
    const page = await pages.open('/codes?q=menu');
    await page.getByRole('grid', { name: 'Codes' }).press('Control+a');
    await page.getByRole('button', { name: 'Pause' }).press('Enter');
    await page.getByRole('alertdialog').getByRole('button', { name: 'Pause' }).press('Enter');
    await page.getByText('2 codes changed.').waitFor();
    const { id } = await codeOf('Lunch menu');
    await pages.client(CodesService).deleteCode({ id });
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await page.getByText('1 code could not be changed back. The code does not exist any more.').waitFor();
    expect((await codeOf('Dinner menu')).paused).toBe(false);
    await pages.client(CodesService).restoreCode({ id });
    await pages.client(CodesService).updateCode({ id, paused: false, updateMask: { paths: ['paused'] } });
  });

  test('does not undo the folder or target of a code that another person has changed since', async () => {
    const codes = pages.client(CodesService);
    const ids = await Promise.all(['Lunch menu', 'Dinner menu'].map(async (name) => (await codeOf(name)).id));
    const page = await pages.open('/codes?q=menu');
    const undo = async (targetUrl: string) => {
      await page.getByText('2 codes changed.').waitFor();
      await codes.updateCode({
        id: ids[0] ?? '',
        folder: 'Theirs',
        targetUrl,
        updateMask: { paths: ['folder', 'target_url'] },
      });
      await page.getByRole('button', { name: 'Undo' }).press('Enter');
      await page.getByText('1 code could not be changed back. Someone else has changed that since.').waitFor();
      await page.getByRole('button', { name: 'Dismiss' }).last().press('Enter');
    };
    let reads = 0;
    page.on('request', (request) => {
      if (/GetCode/.test(request.url())) reads += 1;
    });
    const { targetUrl } = await codeOf('Dinner menu');
    await page.getByText('2 codes').first().waitFor();
    await page.getByRole('grid', { name: 'Codes' }).press('Control+a');
    await page.getByRole('button', { name: 'Move to folder' }).press('Enter');
    await page.keyboard.type('Both menus');
    await page.getByRole('option', { name: 'Create “Both menus”' }).click();
    await undo('https://example.com/theirs');
    expect((await codeOf('Lunch menu')).folder?.name).toBe('Theirs');
    expect((await codeOf('Dinner menu')).folder).toBeUndefined();
    await page.getByRole('grid', { name: 'Codes' }).press('Control+a');
    await page.getByRole('button', { name: 'Change target' }).press('Enter');
    await page.getByRole('textbox', { name: 'New target' }).fill('https://example.com/mine');
    await page.keyboard.press('Enter');
    await undo('https://example.com/theirs/2');
    expect((await codeOf('Lunch menu')).targetUrl).toBe('https://example.com/theirs/2');
    expect((await codeOf('Dinner menu')).targetUrl).toBe(targetUrl);
    expect(reads, 'one call for all codes of an undo').toBe(2);
    await codes.updateCodes({ ids, folder: 'none' });
    await page.close();
  });

  test('tries an undo again, whether or not the core had made it when the call failed', async () => {
    const page = await pages.open('/codes?q=menu');
    await page.getByText('2 codes').first().waitFor();
    await page.getByRole('grid', { name: 'Codes' }).press('Control+a');
    await page.getByRole('button', { name: 'Move to folder' }).press('Enter');
    await page.keyboard.type('Both menus');
    await page.getByRole('option', { name: 'Both menus' }).click();
    await page.getByText('2 codes changed.').waitFor();
    await page.route(/BatchGetCodes/, (route) => route.abort(), { times: 1 });
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await page.getByText('2 codes could not be changed back. Signpost is unavailable at the moment.').waitFor();
    await page.route(/UpdateCodes/, (route) => route.fetch().then(() => route.abort()), { times: 1 });
    await page.getByRole('button', { name: 'Try again' }).press('Enter');
    await expect.poll(async () => (await codeOf('Lunch menu')).folder).toBeUndefined();
    await page.getByRole('button', { name: 'Try again' }).press('Enter');
    await page.getByText('The change is undone.').waitFor();
    await page.close();
  });

  const retargetVoucher = async (page: Page, url: string) => {
    await page.getByRole('checkbox', { name: 'Select Voucher' }).click();
    await page.getByRole('button', { name: 'Change target' }).press('Enter');
    await page.getByRole('dialog').getByRole('textbox', { name: 'New target' }).fill(url);
    await page.getByRole('dialog').getByRole('button', { name: 'Change target' }).press('Enter');
  };

  test.each(['ChangeTargets', 'GetTargetChange'])(
    'takes back new targets although no answer of %s came',
    async (method) => {
      const page = await pages.open('/codes');
      const { targetUrl = '' } = await codeOf('Voucher');
      await page.route(new RegExp(`/${method}$`), (route) => route.fetch().then(() => route.abort()), { times: 1 });
      await retargetVoucher(page, `https://example.com/${method}`);
      const report = page.getByRole('alertdialog', { name: 'Changing targets' });
      await report.getByText('Signpost is unavailable at the moment.').waitFor();
      await expect.poll(async () => (await codeOf('Voucher')).targetUrl).toBe(`https://example.com/${method}`);
      await report.getByRole('button', { name: 'Undo' }).press('Enter');
      await page.getByText('The change is undone.').waitFor();
      expect((await codeOf('Voucher')).targetUrl).toBe(targetUrl);
      await page.close();
    },
  );

  test('says that the plan does not include new targets of many codes', async () => {
    const account = pages.client(AccountsService);
    await account.updateAccount({ plan: Plan.FREE });
    const page = await pages.open('/codes');
    await retargetVoucher(page, 'https://example.com/many');
    await page.getByText('Your plan does not include changing the targets of many codes at once.').waitFor();
    expect(await page.getByRole('alertdialog').getByRole('button', { name: 'Undo' }).count()).toBe(0);
    await account.updateAccount({ plan: Plan.BUSINESS });
    await page.close();
  });

  test('takes back new targets only after all of them are set', async () => {
    const page = await pages.open('/codes');
    const { id, targetUrl = '' } = await codeOf('Voucher');
    const pool = new Pool({ connectionString: pages.signpost.databaseUrl, max: 1 });
    await pool.query('begin');
    await pool.query('select from codes where id = $1 for update', [decodeId('qr', id)]);
    await retargetVoucher(page, 'https://example.com/late');
    await page.getByRole('alertdialog').getByRole('button', { name: 'Stop' }).press('Enter');
    await page.getByText('Stopped. 1 code may still be changed in the background.').waitFor();
    // Not for what other people change.
    await page.route(/ListTargetChanges/, (route) => route.abort());
    const asked = page.waitForRequest(/BatchGetCodes|WatchTargetChange/);
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await asked;
    await page.getByText('Undoing the change…').waitFor();
    await fillMessages(page);
    const asksBeforeClosing = () =>
      page.evaluate(() => !window.dispatchEvent(new Event('beforeunload', { cancelable: true })));
    expect(await asksBeforeClosing()).toBe(true);
    await pool.query('commit');
    await pool.end();
    await page.getByText('The change is undone.').waitFor();
    expect(await page.getByText('Undoing the change…').count()).toBe(0);
    expect(await asksBeforeClosing()).toBe(false);
    const targets = pages.client(TargetsService);
    await expect.poll(async () => (await targets.listTargetChanges({ unfinished: true })).changes).toEqual([]);
    expect((await codeOf('Voucher')).targetUrl).toBe(targetUrl);
    await page.close();
  });

  test('gives codes back what they had last, also if it has changed since they were selected', async () => {
    const page = await pages.open('/codes');
    await page.getByRole('checkbox', { name: 'Select Voucher' }).click();
    const { id } = await codeOf('Voucher');
    await pages.client(CodesService).updateCode({ id, folder: 'Bar', updateMask: { paths: ['folder'] } });
    await comeBack(page);
    await page.getByRole('row', { name: 'Voucher' }).getByText('Bar').waitFor();
    await page.getByRole('button', { name: 'Move to folder' }).press('Enter');
    await page.getByRole('option', { name: 'Unfiled' }).click();
    await page.getByText('1 code changed.').waitFor();
    expect((await codeOf('Voucher')).folder).toBeUndefined();
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await expect.poll(async () => (await codeOf('Voucher')).folder?.name).toBe('Bar');
  });

  test('takes codes back out of a folder that has the typed name in another spelling', async () => {
    const page = await pages.open('/codes?q=voucher');
    await page.getByRole('checkbox', { name: 'Select Voucher' }).click();
    const codes = pages.client(CodesService);
    const [poster, before] = [await codeOf('Window poster'), await codeOf('Voucher')];
    const move = page.getByRole('button', { name: 'Move to folder' });
    await move.press('Enter');
    await codes.updateCode({ id: poster.id, folder: 'Straße', updateMask: { paths: ['folder'] } });
    await page.keyboard.type('STRASSE');
    await page.getByRole('option', { name: 'Create “STRASSE”' }).click();
    await page.getByText('1 code changed.').waitFor();
    expect((await codeOf('Voucher')).folder?.name).toBe('Straße');
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await page.getByText('The change is undone.').waitFor();
    expect((await codeOf('Voucher')).folder).toEqual(before.folder);
    // Once the page knows the folder, it is found, and no other one is offered.
    await comeBack(page);
    await page.getByRole('checkbox', { name: 'Select Voucher' }).click();
    await move.press('Enter');
    await page.keyboard.type('STRASSE');
    await expect.poll(() => page.getByRole('option').allTextContents()).toEqual(['Straße']);
    await codes.updateCode({ id: poster.id, updateMask: { paths: ['folder'] } });
    await page.close();
  });

  test('exports selected codes with the scans that the list shows, also if they are newer than the selection', async () => {
    const page = await pages.open('/codes');
    await page.getByRole('checkbox', { name: 'Select Voucher' }).click();
    const pool = new Pool({ connectionString: pages.signpost.databaseUrl, max: 1 });
    const { id } = await codeOf('Voucher');
    await pool.query('insert into scan_totals (code_id, account_id, scans) values ($1, $2, 4321)', [
      decodeId('qr', id),
      decodeId('acct', pages.account),
    ]);
    await pool.end();
    await comeBack(page);
    await page.getByRole('row', { name: 'Voucher' }).getByText('4,321').waitFor();
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export CSV' }).press('Enter'),
    ]);
    expect(await readFile(await file.path(), 'utf8')).toMatch(/Voucher.*,4321,active,/);
    await page.close();
  });

  test('searches for what is typed after a pause', async () => {
    const page = await pages.open('/codes');
    const field = page.getByRole('searchbox', { name: 'Search codes' });
    await field.focus();
    await page.keyboard.type('window ');
    await page.waitForURL('**/codes?q=window');
    await page.getByRole('grid', { name: 'Codes' }).and(page.locator('[aria-rowcount="2"]')).waitFor();
    await page.keyboard.type('poster');
    await page.waitForURL(/q=window(\+|%20)poster$/);
    expect(await field.inputValue()).toBe('window poster');
    await page.getByRole('button', { name: 'Clear filters' }).press('Enter');
    await expect.poll(() => field.inputValue()).toBe('');
  });

  test('opens another page, whatever was typed into the search just before', async () => {
    const page = await pages.open('/codes');
    await page.route(/\/assets\/[^/]*\.(js|css)$/, async (route) => {
      await page.waitForTimeout(1_500);
      await route.continue();
    });
    await page.getByRole('searchbox', { name: 'Search codes' }).fill('menu');
    await page.getByRole('navigation').getByRole('link', { name: 'Team' }).click();
    await page.getByRole('heading', { level: 1, name: 'Team' }).waitFor();
    await page.close();
  });

  test('keeps filters and the opened code in the address', async () => {
    const page = await pages.open('/codes');
    await page.getByRole('searchbox', { name: 'Search codes' }).fill('poster');
    await page.waitForURL('**/codes?q=poster');
    const list = page.getByRole('grid', { name: 'Codes' });
    await expect.poll(() => list.getAttribute('aria-rowcount')).toBe('2');
    await list.focus();
    await page.keyboard.press('Enter');
    const details = page.getByRole('complementary', { name: 'Details of Window poster' });
    await details.getByRole('link', { name: 'Open the code' }).waitFor();
    expect(page.url()).toContain((await codeOf('Window poster')).id);
    await page.reload();
    await details.getByRole('link', { name: 'Open the code' }).waitFor();
    await page.goto(`${pages.dashboard.url}/codes?q=nothing-like-this`);
    await page.getByRole('heading', { name: 'No code matches' }).waitFor();
  });

  test('does not repeat a change that failed because the session ended', async () => {
    const before = await pausedNow();
    const page = await pages.open('/codes', { context: { locale: 'en-AU' } });
    const list = page.getByRole('grid', { name: 'Codes' });
    await list.getByRole('row').nth(1).waitFor();
    await list.focus();
    await page.keyboard.press('Space');
    const cookies = await page.context().cookies();
    await page.context().clearCookies();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('heading', { name: 'Sign in to Signpost' }).waitFor();
    await page.context().addCookies(cookies);
    const failure = page.getByRole('alertdialog').getByText('Your session had ended. Try again.');
    const comesBack = async () => {
      await page.evaluate(() => window.dispatchEvent(new Event('visibilitychange')));
      return failure.isVisible();
    };
    await expect.poll(comesBack).toBe(true);
    await page.getByRole('button', { name: 'Close', exact: true }).last().click();
    await list.getByRole('row').nth(1).waitFor();
    expect(await pausedNow()).toBe(before);
    // It can be tried again.
    await page.getByText('1 code selected').waitFor();
    await page.context().close();
  });

  test('cuts no column off, whatever the width', async () => {
    const page = await pages.open('/codes');
    const grid = page.getByRole('grid', { name: 'Codes' });
    await grid.getByRole('row').nth(1).waitFor();
    const overflow = () =>
      grid.evaluate((element) => (element.querySelector('[role=row]')?.scrollWidth ?? 0) - element.clientWidth);
    const check = async (widths: readonly number[]) => {
      for (const width of widths) {
        await page.setViewportSize({ width, height: 800 });
        await expect.poll(overflow, { message: `px beyond the list at ${width} px` }).toBeLessThanOrEqual(0);
      }
    };
    await check([641, 700, 760, 960, 1_100, 1_300]);
    // The details of a code are beside the list.
    await page.setViewportSize({ width: 1_201, height: 800 });
    await grid.focus();
    await page.keyboard.press('Enter');
    await page.getByRole('complementary').waitFor();
    await check([1_201, 1_280, 1_440]);
    await page.close();
  });

  test('shows the beginning of a long name that runs from right to left', async () => {
    const name = `قائمة ${'الطعام '.repeat(20)}`.trim();
    const { code } = await pages.client(CodesService).createCode({ targetUrl: 'https://example.com/rtl', name });
    const page = await pages.open('/codes?q=rtl');
    const cell = page.getByRole('rowheader', { name });
    await cell.waitFor();
    // Where the first letter is, within the cell.
    const isSeen = await cell.evaluate((element) => {
      const range = document.createRange();
      range.setStart(element.firstChild as Node, 0);
      range.setEnd(element.firstChild as Node, 1);
      const [letter, box] = [range.getBoundingClientRect(), element.getBoundingClientRect()];
      return letter.left >= box.left && letter.right <= box.right;
    });
    expect(isSeen).toBe(true);
    await pages.client(CodesService).deleteCode({ id: code?.id ?? '' });
    await page.close();
  });

  test('Tab leads out of the list after a single step within it', async () => {
    const page = await pages.open('/codes');
    const list = page.getByRole('grid', { name: 'Codes' });
    await page.getByRole('row', { name: 'Voucher' }).waitFor();
    await list.focus();
    await page.keyboard.press('End');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    expect(await list.evaluate((element) => element.contains(document.activeElement))).toBe(false);
  });

  test('Back closes the details of a code, and then leaves the list', async () => {
    for (const viewport of [
      { width: 1440, height: 900 },
      { width: 390, height: 844 },
    ]) {
      const page = await pages.open('/', { context: { viewport } });
      await page.goto(`${pages.dashboard.url}/codes`);
      const details = page.getByRole(viewport.width < 1200 ? 'dialog' : 'complementary');
      const open = () => page.getByRole('row', { name: 'Voucher' }).click();
      await open();
      await details.waitFor();
      await page.goBack();
      await details.waitFor({ state: 'detached' });
      expect(new URL(page.url()).pathname).toBe('/codes');
      // Closed otherwise, they leave nothing behind that Back would have to pass.
      await open();
      await details.getByRole('button', { name: 'Close' }).press('Enter');
      await details.waitFor({ state: 'detached' });
      await page.goBack();
      await page.waitForURL(`${pages.dashboard.url}/`);
      await page.context().close();
    }
  });

  test('buttons that remove themselves pass the focus on', async () => {
    const page = await pages.open('/codes?state=active&kind=dynamic', {
      context: { locale: 'en-IE', viewport: { width: 1440, height: 900 } },
    });
    const list = page.getByRole('grid');
    await page.getByRole('row', { name: /Voucher/ }).waitFor();
    const focused = () =>
      page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent);
    await page.getByRole('button', { name: 'Remove filter: State' }).press('Enter');
    await expect.poll(() => page.url()).not.toContain('state');
    await expect.poll(focused).toBe('State');
    await page.getByRole('button', { name: 'Clear filters' }).press('Enter');
    await expect.poll(() => page.url()).not.toContain('kind');
    await expect.poll(focused).toBe('Folder');
    await list.focus();
    await page.keyboard.press('Space');
    await page.getByRole('button', { name: 'Clear selection' }).press('Enter');
    await page.getByRole('toolbar').waitFor({ state: 'detached' });
    expect(await list.evaluate((element) => element === document.activeElement)).toBe(true);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Close details' }).press('Enter');
    await page.getByRole('button', { name: 'Close details' }).waitFor({ state: 'detached' });
    expect(await list.evaluate((element) => element === document.activeElement)).toBe(true);
    await page.context().close();
  });

  test('leaves out of the address what it does not understand', async () => {
    for (const search of ['q=true', 'tags=abc', 'state=foo', 'folder=5', 'code=7']) {
      const page = await pages.open(`/codes?${search}`);
      await page.getByRole('row', { name: 'Voucher' }).waitFor();
      expect(await page.getByRole('button', { name: 'Clear filters' }).count(), search).toBe(0);
      await page.close();
    }
    const page = await pages.open('/codes');
    for (const number of ['2026', '1e3', '007']) {
      await page.goto(`${pages.dashboard.url}/codes?q=${number}`);
      await page.getByRole('heading', { name: 'No code matches' }).waitFor();
      expect(await page.getByRole('searchbox', { name: 'Search codes' }).inputValue()).toBe(number);
    }
    await page.getByRole('main').getByRole('link', { name: 'Clear filters' }).press('Enter');
    await page.getByRole('row', { name: 'Voucher' }).waitFor();
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('content');
    await page.close();
  });

  test('says that the folder of a filter does not exist any more', async () => {
    const page = await pages.open(`/codes?folder=${encodeId('folder', newUuid())}`);
    await page.getByText('This folder does not exist any more.').waitFor();
    await page.getByRole('button', { name: 'Folder: does not exist any more', exact: true }).waitFor();
    expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0);
    await page.close();
  });

  test('finds codes in the search of all pages', async () => {
    const page = await pages.open('/');
    await page.getByRole('button', { name: 'Search' }).click();
    await page.getByRole('searchbox').fill('vouch');
    await page.getByRole('option', { name: 'Voucher' }).waitFor();
    await page.getByRole('searchbox').press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/codes/${(await codeOf('Voucher')).id}`);
  });

  test('offers a viewer nothing to change', async () => {
    const page = await pages.open('/codes', { role: Role.VIEWER });
    await page.getByText('Window poster').waitFor();
    expect(await page.getByRole('checkbox').count()).toBe(0);
    expect(await page.getByRole('link', { name: 'New code' }).count()).toBe(0);
  });

  test('changes all selected codes, whether or not the list still shows them', async () => {
    const page = await pages.open('/codes');
    await page.getByRole('checkbox', { name: 'Select Window poster' }).click();
    await page.getByText('1 code selected').waitFor();
    // Its row becomes the last one, whose page is not loaded.
    await insertCodes(PAUSED, true);
    await comeBack(page);
    const { total } = await pages.client(CodesService).listCodes({});
    await page.locator(`[role=grid][aria-rowcount="${total + 1n}"]`).waitFor();
    await page.getByRole('button', { name: 'Pause' }).press('Enter');
    await page.getByRole('alertdialog').getByRole('button', { name: 'Pause' }).press('Enter');
    await page.getByText('1 code changed.').waitFor();
    expect((await codeOf('Window poster')).paused).toBe(true);
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await expect.poll(async () => (await codeOf('Window poster')).paused).toBe(false);
  });

  test('selects all codes on a phone', async () => {
    const page = await openPaused();
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByRole('checkbox', { name: 'Select Code' }).first().click();
    await page.getByRole('button', { name: 'Select all codes that match' }).click();
    await page.getByText('1,100 codes selected').waitFor();
    expect(await page.getByRole('button', { name: 'Select all codes that match' }).count()).toBe(0);
    await page.close();
  });

  test('prints all rows that are loaded, and says how many there are', async () => {
    const page = await openPaused();
    const rows = page.getByRole('row').filter({ has: page.getByRole('rowheader') });
    expect(await rows.count()).toBeLessThan(50);
    await page.emulateMedia({ media: 'print' });
    await expect.poll(() => rows.count()).toBe(100);
    await page.getByText('These are the first 100 of 1,100 codes.').waitFor();
    const boxes = await Promise.all([rows.first(), rows.last()].map((row) => row.boundingBox()));
    expect((boxes[1]?.y ?? 0) - (boxes[0]?.y ?? 0)).toBeGreaterThanOrEqual(99 * 40);
    await page.emulateMedia({ media: 'screen' });
    await expect.poll(() => rows.count()).toBeLessThan(50);
    await page.close();
  });

  test('begins another list at its top, however far the one before was scrolled', async () => {
    const page = await openPaused();
    await page.getByRole('grid', { name: 'Codes' }).press('End');
    await page.locator(`[aria-rowindex="${PAUSED + 1}"] [role=rowheader]`).waitFor();
    const offsets: unknown[] = [];
    page.on('request', (request) => {
      if (/ListCodes/.test(request.url())) offsets.push(request.postDataJSON().offset);
    });
    await page.getByRole('searchbox', { name: 'Search codes' }).fill('Code');
    await page.waitForURL(/q=Code/);
    await page.locator('[aria-rowindex="2"] [role=rowheader]').waitFor();
    await page.waitForTimeout(300);
    expect(new Set(offsets)).toEqual(new Set([undefined]));
    await page.close();
  });

  test('keeps what is selected while a range is loaded, and changes more codes than one call takes', async () => {
    const page = await openPaused();
    const list = page.getByRole('grid', { name: 'Codes' });
    const load = await holdCalls(page, /ListCodes/);
    await list.press('ArrowDown');
    await list.press('Shift+End');
    await list.press('Home');
    await list.press('Space');
    await page.getByText('1 code selected').waitFor();
    load();
    await page.getByText('1,100 codes selected').waitFor();
    await page.getByRole('button', { name: 'Resume' }).press('Enter');
    await page.getByText('1,100 codes changed.').waitFor();
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await page.getByText('The change is undone.').waitFor();
    expect(await pausedNow()).toBe(PAUSED);
  });

  test('selects as a range what the list has now, whatever it had when a part of it was loaded', async () => {
    const page = await openPaused();
    const list = page.getByRole('grid', { name: 'Codes' });
    const loaded = (row: number) => page.locator(`[aria-rowindex="${row + 1}"] [role=rowheader]`).waitFor();
    await list.press('End');
    await loaded(PAUSED);
    await list.press('Home');
    await loaded(1);
    await list.press('Space');
    await page.getByRole('button', { name: 'Resume' }).press('Enter');
    await page.getByText('1 code changed.').waitFor();
    await page.locator(`[role=grid][aria-rowcount="${PAUSED}"]`).waitFor();
    await list.press('Shift+End');
    await page.getByText('1,099 codes selected').waitFor();
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await expect.poll(pausedNow).toBe(PAUSED);
    await page.close();
  });

  test.each([
    ['is not made', false, PAUSED - 1_000],
    ['is made, without an answer', true, 0],
  ])('reports a change that breaks off half way, and takes it back: the second call %s', async (_, isMade, paused) => {
    const page = await openPaused();
    await page.getByRole('grid', { name: 'Codes' }).press('Control+a');
    let calls = 0;
    await page.route(/UpdateCodes/, async (route) => {
      calls += 1;
      if (calls !== 2) return route.continue();
      if (isMade) await route.fetch();
      return route.abort();
    });
    await page.getByRole('button', { name: 'Resume' }).press('Enter');
    const report = page.getByRole('alertdialog', { name: 'Resuming codes' });
    await report.getByText('Signpost is unavailable at the moment.').waitFor();
    await report.getByText('1,000 codes changed.').waitFor();
    expect(await pausedNow()).toBe(paused);
    await report.getByRole('button', { name: 'Undo' }).press('Enter');
    await page.getByText('The change is undone.').waitFor();
    expect(await pausedNow()).toBe(PAUSED);
  });

  test.each([
    ['continue', 'Stopped. 1,000 codes changed.', PAUSED - 1_000],
    ['abort', 'Stopped. Signpost is unavailable at the moment.', PAUSED],
  ] as const)('stops a change when the page is left, and says how far it got: %s', async (outcome, text, paused) => {
    const page = await openPaused();
    await page.getByRole('grid', { name: 'Codes' }).press('Control+a');
    const left = Promise.withResolvers<void>();
    await page.route(/UpdateCodes/, async (route) => {
      await left.promise;
      await route[outcome]();
    });
    const update = page.waitForRequest(/UpdateCodes/);
    await page.getByRole('button', { name: 'Resume' }).press('Enter');
    await update;
    await page.evaluate(() => history.pushState(null, '', '/team'));
    await page.getByRole('heading', { level: 1, name: 'Team' }).waitFor();
    left.resolve();
    await page.getByText(text).waitFor();
    expect(await pausedNow()).toBe(paused);
    if (paused === PAUSED) return;
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await page.getByText('The change is undone.').waitFor();
    expect(await pausedNow()).toBe(PAUSED);
  });

  test('reaches the last of a million codes, loading only what is visible', async () => {
    const { id: last } = await codeOf('Window poster');
    await insertCodes(1_000_000);
    const { total } = await pages.client(CodesService).listCodes({});
    const page = await pages.open('/codes');
    const list = page.getByRole('grid', { name: 'Codes' });
    await page.locator(`[role=grid][aria-rowcount="${total + 1n}"]`).waitFor();
    const calls = vi.fn();
    page.on('request', (request) => request.url().includes('/ListCodes') && calls());
    // As a drag of the scrollbar does: through 20,000 rows in each frame of 16 ms, also on a slow machine.
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000);
    for (let step = 1; step < 50; step++) {
      await list.evaluate(async (element, step) => {
        const scrolled = new Promise((resolve) => element.addEventListener('scroll', resolve, { once: true }));
        element.scrollTop = (element.scrollHeight / 50) * step;
        await scrolled;
      }, step);
      await page.clock.runFor(16);
    }
    await page.clock.resume();
    await list.focus();
    await page.keyboard.press('End');
    await page.getByRole('row', { name: NAMES[0] }).waitFor();
    expect(calls.mock.calls.length).toBeLessThan(25);
    expect(await page.getByRole('row').count()).toBeLessThan(60);
    await page.keyboard.press('Enter');
    await page.waitForURL(`**code=${last}`);
  }, 240_000);

  test('says that it deletes at least so many codes while not all have been searched', async () => {
    // Ten of the million, of which one is among the newest 100,000.
    const page = await pages.open('/codes?q=Code+99999');
    await page.getByText('At least 1 code').waitFor();
    await page.getByRole('grid', { name: 'Codes' }).press('Control+a');
    await page.getByText('At least 1 code selected').waitFor();
    await page.getByRole('button', { name: 'Delete' }).press('Enter');
    const question = page.getByRole('alertdialog', { name: 'Delete at least 1 code?' });
    await question.getByRole('button', { name: 'Delete' }).press('Enter');
    await page.getByText('10 codes changed.').waitFor();
    await page.close();
  });
});
