import { readFile } from 'node:fs/promises';
import { unzipSync } from 'fflate';
import { Client } from 'pg';
import type { Download, Page } from 'playwright-core';
import { beforeAll, describe, expect, onTestFailed, onTestFinished, test, vi } from 'vitest';
import { AccountsService, Plan, Role } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { BatchesService } from '../../../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { CHROMIUM } from '../../../../test/harness/browser.ts';
import { expectAccessible } from '../../accessible.fixture.ts';
import { batches as de } from '../../messages/de/batches.ts';
import { batches as en } from '../../messages/en/batches.ts';
import { type DashboardPages, holdCalls, startPages, streamOf } from '../../pages.fixture.ts';

/** Making codes out of a CSV file, following the batch, and taking its files. */

const HEADER = 'Link;Bezeichnung;Ordner;Schlagwörter;SKU;Notiz';
const row = (n: number) => `https://example.com/table/${n};Tisch ${n};Tische;innen|Fenster;T-${n};x`;

describe.skipIf(!CHROMIUM)('batches', () => {
  let pages: DashboardPages;
  beforeAll(async () => {
    pages = await startPages({ gateways: 0, plan: Plan.ENTERPRISE });
  });

  const choose = (page: Page, name: string, content: string | Buffer) =>
    page.locator('input[type=file]').setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(content) });
  const contentOf = async (download: Download) => readFile((await download.path()) ?? '');
  const batchesNamed = async (name: string) =>
    (await pages.client(BatchesService).listBatches({})).batches.filter((batch) => batch.name === name);

  test('a file becomes codes by keyboard; bad rows are shown before and can be taken along', async () => {
    const page = await pages.open('/batches/new');
    await page.getByRole('button', { name: 'Choose a file' }).waitFor();
    const rows = [row(1), 'example.com;Tisch 2;;;T-2;x', row(3), row(4).replace('T-4', 'T-3')];
    // As Excel writes it in German: semicolons and Windows-1252.
    await choose(page, 'Tische.csv', Buffer.from([HEADER, ...rows].join('\r\n'), 'latin1'));
    await page.getByText('1 row has errors and will be left out. 3 can be created.').waitFor();
    await page.getByText('1 row should be looked at, but can be created.').waitFor();
    const problems = page.getByRole('table', { name: 'Problem' });
    await problems.getByRole('row', { name: /^3 Use a complete address/ }).waitFor();
    const [bad] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download these rows as CSV' }).press('Enter'),
    ]);
    expect(bad.suggestedFilename()).toBe('Tische-errors.csv');
    expect(String(await contentOf(bad))).toBe(
      '\ufeffLink,Bezeichnung,Ordner,Schlagwörter,SKU,Notiz,error\r\n' +
        'example.com,Tisch 2,,,T-2,x,Use a complete address that begins with https:// or http://.\r\n',
    );
    const create = page.getByRole('button', { name: 'Create 3 codes' });
    for (let steps = 0; steps < 60 && !(await create.evaluate((e) => e === document.activeElement)); steps++) {
      await page.keyboard.press('Tab');
    }
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/batches\/batch_/);
    await page.getByRole('heading', { name: 'Tische', level: 1 }).waitFor();
    await page.getByRole('cell', { name: 'Tisch 3' }).waitFor();
    const { codes } = await pages.client(CodesService).listCodes({ folder: 'Tische' });
    expect(codes.map(({ name }) => name)).toEqual(['Tisch 4', 'Tisch 3', 'Tisch 1']);
    expect(codes[0]?.tags).toEqual(['Fenster', 'innen']);
  });

  test('columns can be assigned by hand', async () => {
    const page = await pages.open('/batches/new');
    await page.getByRole('button', { name: 'Choose a file' }).waitFor();
    await choose(page, 'odd.csv', 'where,what\nhttps://example.com/a,A\n');
    await page.getByText('Choose the column with the target URLs.').waitFor();
    await page.getByRole('button', { name: 'Use of the column “where”' }).press('Enter');
    await page.getByRole('option', { name: 'Target URL' }).press('Enter');
    await page.getByRole('button', { name: 'Create 1 code', exact: true }).waitFor();
  });

  test.each([
    ['target_url\n', 'The file has no rows below its header.'],
    ['target_url,name\n"https://example.com', 'The file is not valid CSV'],
    [`target_url\n${'https://example.com\n'.repeat(25_001)}`, 'The file has more than 25,000 rows.'],
  ])('a file that cannot be used is refused: %#', async (content, sentence) => {
    const page = await pages.open('/batches/new');
    await page.getByRole('button', { name: 'Choose a file' }).waitFor();
    await choose(page, 'bad.csv', content);
    await page.getByText(sentence).waitFor();
  });

  test('of two chosen files the latest counts, also if the earlier one takes longer to read', async () => {
    const page = await pages.open('/batches/new');
    await page.getByRole('button', { name: 'Choose a file' }).waitFor();
    await page.evaluate(() => {
      const { arrayBuffer } = File.prototype;
      File.prototype.arrayBuffer = async function () {
        if (this.name === 'early.csv') await new Promise((done) => setTimeout(done, 1_500));
        return arrayBuffer.call(this);
      };
    });
    await choose(page, 'early.csv', 'target_url\nhttps://example.com/1\nhttps://example.com/2\n');
    await choose(page, 'late.csv', 'target_url\nhttps://example.com/1\n');
    await page.getByText('late.csv: 1 row').waitFor();
    await page.waitForTimeout(2_500);
    await page.getByText('late.csv: 1 row').waitFor();
  });

  test('a corrected file keeps what was entered for all codes, and leaving asks', async () => {
    const page = await pages.open('/batches/new');
    await page.getByRole('button', { name: 'Choose a file' }).waitFor();
    await choose(page, 'menus.csv', 'target_url\nexample.com\nhttps://example.com/2\n');
    const name = page.getByLabel('Name (optional)');
    expect(await name.inputValue()).toBe('menus');
    await name.fill('Menus of spring');
    await page.getByRole('combobox', { name: 'Folder' }).fill('Spring');
    await choose(page, 'menus-2.csv', 'target_url\nhttps://example.com/1\nhttps://example.com/2\n');
    await page.getByText('menus-2.csv: 2 rows').waitFor();
    expect(await name.inputValue()).toBe('Menus of spring');
    expect(await page.getByRole('combobox', { name: 'Folder' }).inputValue()).toBe('Spring');
    await page.getByRole('navigation').getByRole('link', { name: 'Codes' }).press('Enter');
    const question = page.getByRole('alertdialog', { name: 'Discard what you have entered?' });
    await question.getByRole('button', { name: 'Discard' }).press('Enter');
    await page.waitForURL('**/codes');
    await page.close();
  });

  test('tags and colours for all codes are checked before anything is created', async () => {
    const page = await pages.open('/batches/new');
    await page.getByRole('button', { name: 'Choose a file' }).waitFor();
    const many = (name: string) => Array.from({ length: 19 }, (_, n) => `${name}${n}`);
    await choose(
      page,
      'tags.csv',
      `url,tags\nhttps://example.com/1,${many('own').join(';')}\nhttps://example.com/2,\n`,
    );
    await page.getByText('All good: 2 codes can be created.').waitFor();
    const tags = page.getByRole('combobox', { name: 'Tags' });
    await tags.fill('summer,Own1,lake,');
    await page.getByText('1 row has errors and will be left out. 1 can be created.').waitFor();
    await page.getByRole('row', { name: /^2 More than 20 tags with those for all codes\./ }).waitFor();
    const create = page.getByRole('button', { name: /^Create/ });
    expect(await create.isDisabled()).toBe(false);
    await tags.fill(`${many('all').join(',')},`);
    await expect.poll(() => create.isDisabled()).toBe(true);

    await page.getByRole('img', { name: 'Preview of the code' }).waitFor();
    await page.getByRole('textbox', { name: 'Modules', exact: true }).fill('#ffe000');
    await page.getByText(/^The contrast is only 1\.\d:1\./).waitFor();
    await page.getByRole('textbox', { name: 'Background', exact: true }).fill('#000000');
    await page.getByText('Not every scanner reads light modules on a dark background.').waitFor();
    await expectAccessible(page);
    await page.close({ runBeforeUnload: false });
  });

  test('a file that cannot be read is reported', async () => {
    const page = await pages.open('/batches/new');
    await page.getByRole('button', { name: 'Choose a file' }).waitFor();
    await page.evaluate(() => {
      File.prototype.arrayBuffer = () => Promise.reject(new DOMException('gone', 'NotReadableError'));
    });
    await choose(page, 'gone.csv', 'target_url\nhttps://example.com/1\n');
    await page.getByText('The file could not be read. Choose it again.').waitFor();
  });

  test('a single row or code is spoken of in the singular', () => {
    expect(de.allGood(1, '1')).toBe('Alles in Ordnung: 1 Code kann angelegt werden.');
    expect(de.allGood(2, '2')).toBe('Alles in Ordnung: 2 Codes können angelegt werden.');
    expect(de.someBad(1, '1', 1, '1')).toBe('1 Zeile hat Fehler und bleibt außen vor. 1 kann angelegt werden.');
    expect(de.someBad(2, '2', 2, '2')).toBe('2 Zeilen haben Fehler und bleiben außen vor. 2 können angelegt werden.');
    expect(de.warnings(1, '1')).toBe('1 Zeile sollten Sie ansehen; angelegt werden kann sie trotzdem.');
    expect(de.warnings(2, '2')).toBe('2 Zeilen sollten Sie ansehen; angelegt werden können sie trotzdem.');
    expect(de.overCodeLimit(1, '1')).toMatch(/Platz für 1 Code\./);
    expect(de.overCodeLimit(2, '2')).toMatch(/Platz für 2 Codes\./);
    expect(en.overCodeLimit(1, '1')).toMatch(/room for 1 more code\./);
    expect(en.overCodeLimit(0, '0')).toMatch(/room for 0 more codes\./);
  });

  test('a batch is not created twice when the answer was lost', async () => {
    const page = await pages.open('/batches/new');
    await page.getByRole('button', { name: 'Choose a file' }).waitFor();
    await choose(page, 'Lost.csv', `target_url\nhttps://example.com/lost\n`);
    // The page would find the batch by itself.
    await page.route(/ListBatches/, (route) => route.abort());
    await page.route(
      /CreateBatch/,
      async (route) => {
        await route.fetch();
        await route.abort('connectionreset');
      },
      { times: 1 },
    );
    await page.getByRole('button', { name: 'Create 1 code', exact: true }).click();
    await page.getByText('Try again without changing anything: no code will be created twice.').waitFor();
    expect(await batchesNamed('Lost')).toHaveLength(1);
    await page.getByRole('button', { name: 'Create 1 code', exact: true }).click();
    await page.waitForURL(/\/batches\/batch_/);
    expect(await batchesNamed('Lost')).toHaveLength(1);
  });

  test('a batch that is being sent keeps the tab open, and its failure is reported wherever the person is', async () => {
    const page = await pages.open('/batches/new');
    await page.getByRole('button', { name: 'Choose a file' }).waitFor();
    await choose(page, 'Left.csv', 'target_url\nhttps://example.com/left\n');
    await page.route(/ListBatches/, (route) => route.abort());
    const { promise: left, resolve: leave } = Promise.withResolvers<void>();
    await page.route(/CreateBatch/, async (route) => {
      await left;
      await route.abort('connectionreset');
    });
    await page.getByRole('button', { name: 'Create 1 code', exact: true }).click();
    await page.getByText('The rows are being sent.').waitFor();
    await page.getByRole('navigation').getByRole('link', { name: 'Codes' }).press('Enter');
    await page.getByRole('heading', { name: 'Codes', level: 1 }).waitFor();
    const mayClose = () => page.evaluate(() => window.dispatchEvent(new Event('beforeunload', { cancelable: true })));
    expect(await mayClose()).toBe(false);
    leave();
    await page.getByText('Look at the list of batches before you send them again.').waitFor();
    expect(await mayClose()).toBe(true);
    await page.close();
  });

  test('a batch whose page was left while it was loaded does not lead there again, and its form makes another', async () => {
    const page = await pages.open('/batches/new');
    await page.getByRole('button', { name: 'Choose a file' }).waitFor();
    await choose(page, 'Before Back.csv', 'target_url\nhttps://example.com/back\n');
    // The page finds the batch while the call is not answered, if it knows the newest one from before.
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    const newest = page.waitForResponse(/ListBatches/);
    await page.route(
      /CreateBatch/,
      async (route) => {
        await newest;
        const response = await route.fetch();
        await answered;
        await route.fulfill({ response });
      },
      { times: 1 },
    );
    const load = await holdCalls(page, /\/batch-[^/]*\.js$/);
    const create = page.getByRole('button', { name: 'Create 1 code', exact: true });
    await create.press('Enter');
    await page.waitForURL(/\/batches\/batch_/);
    await page.evaluate(() => history.back());
    await page.waitForURL('**/batches/new');
    await Promise.all([page.waitForResponse(/CreateBatch/), answer()]);
    await page.waitForTimeout(500);
    expect(new URL(page.url()).pathname).toBe('/batches/new');
    await page.getByLabel('Name (optional)').fill('After Back');
    await page.getByRole('navigation').getByRole('link', { name: 'Codes' }).press('Enter');
    await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel' }).press('Enter');
    const calls = vi.fn();
    page.on('request', (request) => request.url().endsWith('/CreateBatch') && calls());
    await create.focus();
    await Promise.all([page.keyboard.press('Enter'), page.keyboard.press('Enter')]);
    await page.waitForURL(/\/batches\/batch_/);
    load();
    await page.getByRole('heading', { level: 1, name: 'After Back' }).waitFor();
    expect(calls).toHaveBeenCalledOnce();
    expect(await batchesNamed('Before Back')).toHaveLength(1);
    expect(await batchesNamed('After Back')).toHaveLength(1);
    await page.close();
  });

  test('a batch whose page was left is shown by the next try if the answer of the first was lost', async () => {
    const page = await pages.open('/batches/new');
    await page.getByRole('button', { name: 'Choose a file' }).waitFor();
    await choose(page, 'Twice sent.csv', 'target_url\nhttps://example.com/twice\n');
    const { promise: lost, resolve: lose } = Promise.withResolvers<void>();
    const newest = page.waitForResponse(/ListBatches/);
    await page.route(
      /CreateBatch/,
      async (route) => {
        await newest;
        await route.fetch();
        await lost;
        await route.abort('connectionreset');
      },
      { times: 1 },
    );
    const load = await holdCalls(page, /\/batch-[^/]*\.js$/);
    const create = page.getByRole('button', { name: 'Create 1 code', exact: true });
    await create.press('Enter');
    await page.waitForURL(/\/batches\/batch_/);
    await page.evaluate(() => history.back());
    await page.waitForURL('**/batches/new');
    lose();
    await page.getByText('Try again without changing anything: no code will be created twice.').waitFor();
    await create.press('Enter');
    await page.waitForURL(/\/batches\/batch_/);
    load();
    await page.getByRole('heading', { level: 1, name: 'Twice sent' }).waitFor();
    expect(await batchesNamed('Twice sent')).toHaveLength(1);
    await page.close();
  });

  test('leaving asks also while no column has the target URLs', async () => {
    const page = await pages.open('/batches/new');
    await page.getByRole('button', { name: 'Choose a file' }).waitFor();
    await choose(page, 'unassigned.csv', 'target_url\nhttps://example.com/1\n');
    await page.getByRole('combobox', { name: 'Folder' }).fill('Entered');
    await page.getByRole('button', { name: 'Use of the column “target_url”' }).press('Enter');
    await page.getByRole('option', { name: 'Not used' }).press('Enter');
    await page.getByText('Choose the column with the target URLs.').waitFor();
    await page.getByRole('navigation').getByRole('link', { name: 'Codes' }).press('Enter');
    const question = page.getByRole('alertdialog', { name: 'Discard what you have entered?' });
    await question.getByRole('button', { name: 'Discard' }).press('Enter');
    await page.waitForURL('**/codes');
    await page.close();
  });

  test('all filters of the rows fit on a phone, in German', async () => {
    const [batch] = await batchesNamed('Tische');
    const context = { locale: 'de-DE', viewport: { width: 390, height: 800 } };
    const page = await pages.open('/batches', { context });
    const counts = { total: 25_000, created: 11_111, pending: 2_222, failed: 10_556, skipped: 1_111 };
    const watched = { id: batch?.id, status: 'BATCH_STATUS_COMPLETED', name: 'Tische', counts };
    await page.route(/WatchBatch/, (route) => route.fulfill(streamOf({ batch: watched })));
    await page.goto(`${pages.dashboard.url}/batches/${batch?.id}`);
    const filters = page.getByRole('radio');
    await expect.poll(() => filters.count()).toBe(5);
    const beyond = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect(await beyond(), 'px beyond the screen').toBeLessThanOrEqual(0);
    const right = await page
      .locator('label', { has: filters })
      .last()
      .evaluate((option) => option.getBoundingClientRect().right);
    expect(right).toBeLessThanOrEqual(390);
    await page.context().close();
  });

  test('the files of a batch: images, codes, failed rows', async () => {
    const { batch } = await pages.client(BatchesService).createBatch({
      name: 'Files',
      rows: [
        { targetUrl: 'https://example.com/1', name: 'One', externalRef: '=1+1' },
        { targetUrl: 'nowhere', folder: 'Halls', tags: ['doors', 'summer'], campaignType: 'poster' },
      ],
    });
    const page = await pages.open(`/batches/${batch?.id}`, { role: Role.VIEWER });
    const take = async (name: string) => {
      await page.getByRole('button', { name: 'Download' }).press('Enter');
      const item = page.getByRole('menuitem', { name });
      await item.waitFor();
      const [download] = await Promise.all([page.waitForEvent('download'), item.press('Enter')]);
      const opener = page.getByRole('button', { name: 'Download' });
      await expect.poll(() => opener.evaluate((button) => button === document.activeElement)).toBe(true);
      return contentOf(download);
    };
    for (const type of ['PNG', 'SVG']) {
      const files = Object.keys(unzipSync(await take(`Images as ${type}`)));
      expect(files).toEqual([
        expect.stringMatching(new RegExp(`^00001-.{7}\\.${type.toLowerCase()}$`)),
        'manifest.csv',
      ]);
    }
    expect(String(await take('Codes as CSV'))).toMatch(
      /^\ufeffindex,id,.*\r\n0,qr_.*,https:\/\/example.com\/1,One,'=1\+1\r\n$/,
    );
    expect(String(await take('Failed and skipped rows'))).toMatch(
      /^\ufeffposition,target_url,name,folder,tags,external_ref,campaign_type,reason\r\n2,nowhere,,Halls,"doors,summer",,poster,"?target_url: must be/,
    );
  });

  test('rows that were read just before the batch was completed are read again', async () => {
    const page = await pages.open('/batches');
    let calls = 0;
    await page.route(/GetBatch/, async (route) => {
      calls++;
      const response = await route.fetch();
      const text = await response.text();
      return route.fulfill({ response, body: calls > 1 ? text : text.replace(/_(CREATED|FAILED)\b/g, '_PENDING') });
    });
    await page.getByRole('link', { name: 'Files' }).click();
    await page.getByRole('row', { name: /One.*Created/ }).waitFor();
    await page.getByRole('row', { name: /nowhere.*Failed/ }).waitFor();
    await page.waitForTimeout(300);
    expect(calls).toBe(2);
    await page.close();
  });

  test('progress continues after the core was killed', async () => {
    const page = await pages.open('/batches/new');
    await page.getByRole('button', { name: 'Choose a file' }).waitFor();
    const many = Array.from({ length: 20_000 }, (_, n) => `https://example.com/${n}`);
    await choose(page, 'Many.csv', ['url', ...many].join('\n'));
    // No code is created until the core is killed.
    const database = new Client({ connectionString: pages.signpost.databaseUrl });
    await database.connect();
    onTestFinished(() => database.end());
    await database.query('begin; lock table codes in share mode');
    await page.getByRole('button', { name: 'Create 20,000 codes' }).click();
    await page.waitForURL(/\/batches\/batch_/);
    await page.getByRole('progressbar').waitFor();
    const [core] = pages.signpost.cores;
    const places = await page.getByRole('status').elementHandles();
    onTestFailed(() => core?.restart());
    await core?.kill();
    await page.getByText('The connection was lost. The batch continues').waitFor();
    const texts = await Promise.all(places.map((place) => place.textContent()));
    expect(texts.join(), 'read aloud').toContain('The connection was lost.');
    await database.query('rollback');
    await core?.restart();
    await page.getByText('Completed').waitFor({ timeout: 90_000 });
    await page.getByText('All 20,000').waitFor();
    await expect.poll(() => page.getByText('Created 20,000').count()).toBe(1);
  });

  test('a viewer sees batches and makes none', async () => {
    const page = await pages.open('/batches', { role: Role.VIEWER });
    await page.getByRole('link', { name: 'Files' }).waitFor();
    expect(await page.getByRole('link', { name: 'New batch' }).count()).toBe(0);
    await page.goto(`${pages.dashboard.url}/batches/new`);
    await page.getByText('Your role does not allow this.').waitFor();
  });

  test('are not offered where the plan, or the account’s own contract, has none', async () => {
    const account = pages.client(AccountsService);
    const page = await pages.open('/team');
    for (const [plan, overrides] of [
      [Plan.FREE, {}],
      [Plan.ENTERPRISE, { bulk: false }],
    ] as const) {
      await account.updateAccount({ plan, overrides });
      for (const path of ['/batches', '/batches/new']) {
        await page.goto(`${pages.dashboard.url}${path}`);
        await page.getByText('Your plan does not include batches.').waitFor();
      }
      expect(await page.getByRole('button', { name: /Choose a file|Try again/ }).count()).toBe(0);
    }
    await account.updateAccount({ overrides: {} });
    await page.close();
  });

  test('speaks German', async () => {
    const page = await pages.open('/batches', { context: { locale: 'de-DE' } });
    await page.getByRole('columnheader', { name: 'Fortschritt' }).waitFor();
    await page.getByRole('link', { name: 'Neuer Stapel' }).click();
    await page.getByText('CSV-Datei hier ablegen').waitFor();
  });

  test('are accessible: the list, one of them, and a new one', async () => {
    const page = await pages.open('/batches');
    await page.getByRole('link', { name: 'Files' }).waitFor();
    await expectAccessible(page);
    await page.getByRole('link', { name: 'Files' }).click();
    await page.getByText('nowhere').waitFor();
    await expectAccessible(page);
    await page.goto(`${pages.dashboard.url}/batches/new`);
    await page.getByRole('button', { name: 'Choose a file' }).waitFor();
    await choose(page, 'two.csv', ['url;name', 'https://example.com/1;1', 'x;2'].join('\n'));
    await page.getByRole('table', { name: 'Problem' }).waitFor();
    await expectAccessible(page);
  });
});
