import { Pool } from 'pg';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { decodeId, newUuid } from '../../../../common/contract/ids.ts';
import { Role } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CodeState, CodesService } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { TargetsService } from '../../../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { CHROMIUM, type DashboardPages, startPages } from '../../pages.fixture.ts';

/** The page of codes: its list of any length, its filters, and changes of many codes at once. */

const NAMES = ['Window poster', 'Voucher', 'Lunch menu', 'Dinner menu'];

describe.skipIf(!CHROMIUM)('the page of codes', () => {
  let pages: DashboardPages;
  beforeAll(async () => {
    pages = await startPages();
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
    await page.getByText('An absolute address that begins with https:// or http://.').waitFor();
    await page.getByRole('textbox', { name: 'New target' }).fill('https://example.com/menus');
    await page.keyboard.press('Enter');
    await page.getByText('2 codes changed.').waitFor();
    expect((await codeOf('Lunch menu')).targetUrl).toBe('https://example.com/menus');
    expect((await codeOf('Voucher')).targetUrl).toBe('https://example.com/7');
    await page.getByRole('button', { name: 'Undo' }).focus();
    await page.keyboard.press('Enter');
    await expect.poll(async () => (await codeOf('Lunch menu')).targetUrl).toBe('https://example.com/10');
    const { versions } = await pages.client(TargetsService).listTargetVersions({ id: (await codeOf('Lunch menu')).id });
    expect(versions.map(({ version }) => version)).toEqual([3, 2, 1]);
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

  test('finds codes in the search of all pages', async () => {
    const page = await pages.open('/');
    await page.getByRole('navigation').waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('searchbox').waitFor();
    await page.keyboard.type('vouch');
    await page.getByRole('option', { name: 'Voucher' }).waitFor();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/codes/${(await codeOf('Voucher')).id}`);
  });

  test('offers a viewer nothing to change', async () => {
    const page = await pages.open('/codes', { role: Role.VIEWER });
    await page.getByText('Window poster').waitFor();
    expect(await page.getByRole('checkbox').count()).toBe(0);
    expect(await page.getByRole('link', { name: 'New code' }).count()).toBe(0);
  });

  test('reaches the last of a million codes, loading only what is visible', async () => {
    const { id: last } = await codeOf('Window poster');
    const account = decodeId('acct', pages.account);
    const pool = new Pool({ connectionString: pages.signpost.databaseUrl, max: 1 });
    const COUNT = 1_000_000;
    const CHUNK = 100_000;
    for (let at = 0; at < COUNT; at += CHUNK) {
      await pool.query(
        `insert into codes (id, account_id, type, short_code, target_url, name)
         select id, $1::uuid, 'dynamic', substr(md5(id::text), 1, 14), 'https://example.com/' || n, 'Code ' || n
         from unnest($2::uuid[]) with ordinality as t (id, n)`,
        [account, Array.from({ length: CHUNK }, newUuid)],
      );
    }
    await pool.query('update code_counts set listed = listed + $2, live = live + $2 where account_id = $1', [
      account,
      COUNT,
    ]);
    await pool.query('analyze codes');
    await pool.end();

    const page = await pages.open('/codes');
    const list = page.getByRole('grid', { name: 'Codes' });
    await page.locator(`[role=grid][aria-rowcount="${COUNT + NAMES.length + 1}"]`).waitFor();
    const calls = vi.fn();
    page.on('request', (request) => request.url().includes('/ListCodes') && calls());
    // As a drag of the scrollbar does: through 20,000 rows in each frame.
    await list.evaluate(async (element) => {
      for (let step = 1; step < 50; step++) {
        element.scrollTop = (element.scrollHeight / 50) * step;
        await new Promise((resolve) => requestAnimationFrame(resolve));
      }
    });
    await list.focus();
    await page.keyboard.press('End');
    await page.getByRole('row', { name: NAMES[0] }).waitFor();
    expect(calls.mock.calls.length).toBeLessThan(25);
    expect(await page.getByRole('row').count()).toBeLessThan(60);
    await page.keyboard.press('Enter');
    await page.waitForURL(`**code=${last}`);
  }, 240_000);
});
