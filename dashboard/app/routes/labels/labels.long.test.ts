import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { Role } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CodesService } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { TaxonomyService } from '../../../../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import { CHROMIUM } from '../../../../test/harness/browser.ts';
import { expectAccessible } from '../../accessible.fixture.ts';
import { type DashboardPages, holdCalls, startPages } from '../../pages.fixture.ts';

/** Folders and tags: renaming, merging and deleting them by keyboard, with their effects shown before. */

describe.skipIf(!CHROMIUM)('folders and tags', () => {
  let pages: DashboardPages;
  beforeAll(async () => {
    pages = await startPages({ gateways: 0 });
  });

  const create = (folder: string | undefined, tags: string[] = []) =>
    pages
      .client(CodesService)
      .createCode({ targetUrl: 'https://example.com', tags, ...(folder !== undefined && { folder }) });
  const foldersNow = async () =>
    (await pages.client(TaxonomyService).listFolders({})).folders.map(({ name, codeCount }) => [
      name,
      Number(codeCount),
    ]);
  const tagsNow = async () =>
    (await pages.client(TaxonomyService).listTags({})).tags.map(({ name, codeCount }) => [name, Number(codeCount)]);

  /** Opens the actions of a folder or tag and chooses one, by keyboard. */
  async function act(page: Page, name: string, action: string): Promise<void> {
    await page.getByRole('button', { name: `Actions for “${name}”` }).press('Enter');
    await page.getByRole('menuitem', { name: action }).press('Enter');
    await page.getByRole('dialog').or(page.getByRole('alertdialog')).waitFor();
  }

  test('without any, the page leads to the first code', async () => {
    const page = await pages.open('/folders-and-tags');
    await page.getByRole('heading', { name: 'No folders and tags yet' }).waitFor();
    await page.getByRole('main').getByRole('link', { name: 'New code' }).press('Enter');
    await page.waitForURL('**/codes/new');
  });

  test('are renamed, and the name comes back by undo', async () => {
    await create('Cafés');
    const page = await pages.open('/folders-and-tags');
    await act(page, 'Cafés', 'Rename');
    await page.keyboard.press('Control+a');
    await page.keyboard.type('Coffee');
    const release = await holdCalls(page, /RenameFolder/);
    await page.keyboard.press('Enter');
    await page.keyboard.press('Enter');
    release();
    await page.getByRole('link', { name: 'Coffee' }).waitFor();
    await expect.poll(foldersNow).toEqual([['Coffee', 1]]);
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await page.getByRole('link', { name: 'Cafés' }).waitFor();
    await expect.poll(foldersNow).toEqual([['Cafés', 1]]);
  });

  test('a taken name leads to merging, whose effect is shown before', async () => {
    await create('Tea');
    await create('Tea');
    const page = await pages.open('/folders-and-tags');
    await act(page, 'Tea', 'Rename');
    await page.keyboard.press('Control+a');
    await page.keyboard.type('cafés');
    await page.getByText('“Cafés” exists already.').waitFor();
    await page.getByRole('button', { name: 'Merge into “Cafés”' }).press('Enter');
    await page.getByText('2 codes move from “Tea” to “Cafés”, and “Tea” is deleted.').waitFor();
    await page.getByRole('button', { name: 'Merge', exact: true }).press('Enter');
    await page.getByText('“Tea” was merged into “Cafés”.').waitFor();
    await expect.poll(foldersNow).toEqual([['Cafés', 3]]);
  });

  test('are deleted, and come back on their codes by undo', async () => {
    await create(undefined, ['spring', 'sale']);
    await create(undefined, ['spring']);
    const page = await pages.open('/folders-and-tags');
    await act(page, 'spring', 'Delete');
    await page.getByText('2 codes lose this tag. No code is deleted.').waitFor();
    await page.getByRole('button', { name: 'Delete', exact: true }).press('Enter');
    await page.getByText('“spring” was deleted.').waitFor();
    expect(await tagsNow()).toEqual([['sale', 1]]);
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await page.getByText('“spring” is back on its codes.').waitFor();
    await page.getByRole('link', { name: 'spring' }).waitFor();
    expect(await tagsNow()).toEqual([
      ['sale', 1],
      ['spring', 2],
    ]);
  });

  test('are deleted and come back also if the answer is lost', async () => {
    await create('Lost');
    const page = await pages.open('/folders-and-tags');
    await act(page, 'Lost', 'Delete');
    await page.route(/DeleteFolder/, (route) => route.fetch().then(() => route.abort()), { times: 1 });
    await page.getByRole('button', { name: 'Delete', exact: true }).press('Enter');
    await page.getByText('“Lost” was deleted.').waitFor();
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await page.getByText('“Lost” is back on its codes.').waitFor();
    await expect.poll(foldersNow).toContainEqual(['Lost', 1]);
    await page.close();
  });

  test('are not said to be back on codes that are deleted meanwhile', async () => {
    const { code } = await create('Autumn');
    await create('Autumn');
    const page = await pages.open('/folders-and-tags');
    await act(page, 'Autumn', 'Delete');
    await page.getByRole('button', { name: 'Delete', exact: true }).press('Enter');
    await page.getByText('“Autumn” was deleted.').waitFor();
    await pages.client(CodesService).deleteCode({ id: code?.id ?? '' });
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await page.getByText('1 code could not get “Autumn” back.').waitFor();
    await expect.poll(foldersNow).toContainEqual(['Autumn', 1]);
  });

  test('are said to keep their name if it does not come back', async () => {
    await create(undefined, ['winter']);
    const page = await pages.open('/folders-and-tags');
    await act(page, 'winter', 'Rename');
    await page.keyboard.press('Control+a');
    await page.keyboard.type('snow');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'snow' }).waitFor();
    await page.route(/RenameTag/, (route) => route.abort());
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await page.getByText('Signpost is unavailable at the moment.').waitFor();
    expect(await tagsNow()).toContainEqual(['snow', 1]);
  });

  test('keep what another person has made of them since, whatever is undone', async () => {
    const { code } = await create('Winter');
    const page = await pages.open('/folders-and-tags');
    await act(page, 'Winter', 'Rename');
    await page.keyboard.press('Control+a');
    await page.keyboard.type('Glacier');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Glacier' }).waitFor();
    const taxonomy = pages.client(TaxonomyService);
    const { id = '' } = (await taxonomy.listFolders({})).folders.find(({ name }) => name === 'Glacier') ?? {};
    await taxonomy.renameFolder({ id, name: 'Ice' });
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await page.getByText('Someone else has renamed or deleted “Glacier” since.').waitFor();
    await act(page, 'Ice', 'Delete');
    await page.getByRole('button', { name: 'Delete', exact: true }).press('Enter');
    await page.getByText('“Ice” was deleted.').waitFor();
    await pages.client(CodesService).updateCodes({ ids: [code?.id ?? ''], folder: 'Theirs' });
    await page.getByRole('button', { name: 'Undo' }).last().press('Enter');
    await page.getByText('1 code could not get “Ice” back.').waitFor();
    expect((await pages.client(CodesService).getCode({ id: code?.id ?? '' })).code?.folder?.name).toBe('Theirs');
    await taxonomy.deleteFolder({
      id: (await taxonomy.listFolders({})).folders.find(({ name }) => name === 'Theirs')?.id ?? '',
    });
  });

  test('are found by typing, and lead to their codes', async () => {
    const page = await pages.open('/folders-and-tags');
    await page.getByRole('searchbox', { name: 'Search folders and tags' }).fill('SPR');
    await expect.poll(() => page.getByRole('link', { name: 'Cafés' }).count()).toBe(0);
    await page.getByRole('link', { name: 'spring' }).press('Enter');
    await page.waitForURL(/\/codes\?tags=/);
  });

  test('a viewer sees them and changes none', async () => {
    const page = await pages.open('/folders-and-tags', { role: Role.VIEWER });
    await page.getByRole('link', { name: 'Cafés' }).waitFor();
    expect(await page.getByRole('button', { name: 'Actions for' }).count()).toBe(0);
  });

  test('speak German', async () => {
    const page = await pages.open('/folders-and-tags', { context: { locale: 'de-DE' } });
    await page.getByRole('heading', { name: 'Ordner und Tags', level: 1 }).waitFor();
    await page.getByText('3 Codes').waitFor();
  });

  test('are accessible, with their dialogs', async () => {
    const page = await pages.open('/folders-and-tags');
    await page.getByRole('link', { name: 'Cafés' }).waitFor();
    await expectAccessible(page);
    for (const action of ['Rename', 'Merge', 'Delete']) {
      await act(page, 'sale', action);
      await expectAccessible(page);
      await page.getByRole('button', { name: 'Cancel' }).press('Enter');
      await expect.poll(() => page.getByRole('dialog').or(page.getByRole('alertdialog')).count()).toBe(0);
    }
  });
});
