import { beforeAll, describe, expect, test } from 'vitest';
import { CodesService } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { CHROMIUM } from '../../../../test/harness/browser.ts';
import { expectAccessible } from '../../accessible.fixture.ts';
import { type DashboardPages, holdCalls, startPages } from '../../pages.fixture.ts';

/** Editing the page of a landing-page code, as its page offers it. */

describe.skipIf(!CHROMIUM)('the landing-page editor', () => {
  let pages: DashboardPages;
  beforeAll(async () => {
    pages = await startPages({ gateways: 0 });
  });

  const createPage = async (title: string) => {
    const landingPage = { title, links: ['Menu', 'Map'].map((label) => ({ label, url: 'https://example.com' })) };
    const { code } = await pages.client(CodesService).createLandingPageCode({ name: title, landingPage });
    return code?.id ?? '';
  };
  const pageOf = async (id: string) => (await pages.client(CodesService).getCode({ id })).code?.landingPage;

  test('saves by keyboard what was changed, and takes it back by undo', async () => {
    const id = await createPage('Harbour');
    const page = await pages.open(`/codes/${id}`);
    await page.getByRole('button', { name: 'Edit landing page' }).press('Enter');
    await page.getByLabel('Heading').press('End');
    await page.keyboard.type(' café');
    const phone = page.getByRole('dialog').frameLocator('iframe').locator('main');
    await phone.getByRole('heading', { name: 'Harbour café', includeHidden: true }).waitFor();
    await page.getByRole('button', { name: 'Move link 2 up' }).press('Enter');
    await page.getByRole('button', { name: 'Save' }).press('Enter');
    await page.getByText('The landing page was saved.').waitFor();
    expect(await pageOf(id)).toMatchObject({ title: 'Harbour café', links: [{ label: 'Map' }, { label: 'Menu' }] });
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await expect
      .poll(() => pageOf(id))
      .toMatchObject({ title: 'Harbour', links: [{ label: 'Menu' }, { label: 'Map' }] });
  });

  test('keeps what was typed when another person has changed the page meanwhile', async () => {
    const id = await createPage('Contested');
    const codes = pages.client(CodesService);
    const page = await pages.open(`/codes/${id}`);
    await page.getByRole('button', { name: 'Edit landing page' }).click();
    await page.getByLabel('Heading').fill('Mine');
    await codes.updateCode({ id, landingPage: { title: 'Theirs' }, updateMask: { paths: ['landing_page'] } });
    const save = page.getByRole('button', { name: 'Save' });
    await save.click();
    await page.getByText('Someone else changed this page meanwhile.').waitFor();
    expect(await pageOf(id)).toMatchObject({ title: 'Theirs' });
    await save.click();
    await page.getByText('The landing page was saved.').waitFor();
    expect(await pageOf(id)).toMatchObject({ title: 'Mine' });
    await page.getByRole('button', { name: 'Undo' }).click();
    await expect.poll(() => pageOf(id)).toMatchObject({ title: 'Theirs' });
  });

  test('keeps what is typed while the page is being saved, and saves it next', async () => {
    const id = await createPage('First');
    const page = await pages.open(`/codes/${id}`);
    await page.getByRole('button', { name: 'Edit landing page' }).click();
    const heading = page.getByLabel('Heading');
    await heading.fill('Second');
    const answer = await holdCalls(page, /UpdateCode/);
    await heading.press('Enter');
    await heading.fill('Third');
    answer();
    await page.getByText('The landing page was saved.').waitFor();
    expect(await heading.inputValue()).toBe('Third');
    expect(await pageOf(id)).toMatchObject({ title: 'Second' });
    await heading.press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(await pageOf(id)).toMatchObject({ title: 'Third' });
    await page.close();
  });

  test('does not undo what was saved once another person has changed the page', async () => {
    const id = await createPage('Before');
    const page = await pages.open(`/codes/${id}`);
    await page.getByRole('button', { name: 'Edit landing page' }).click();
    await page.getByLabel('Heading').fill(' Mine ');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The landing page was saved.').waitFor();
    const theirs = { id, landingPage: { title: 'Theirs' }, updateMask: { paths: ['landing_page'] } };
    await pages.client(CodesService).updateCode(theirs);
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByText('Someone else has changed this page since.').waitFor();
    expect(await pageOf(id)).toMatchObject({ title: 'Theirs' });
  });

  test('says at the fields what is wrong, and saves nothing', async () => {
    const id = await createPage('Unchanged');
    const page = await pages.open(`/codes/${id}`);
    await page.getByRole('button', { name: 'Edit landing page' }).click();
    await page.getByLabel('Heading').fill(' ');
    await page.getByLabel('Link 1: address').fill('javascript:alert(1)');
    await page.getByLabel('Page background', { exact: true }).fill('#777777');
    await page.getByLabel('Text colour', { exact: true }).fill('#888888');
    await page.getByText('The text colour has too little contrast.').waitFor();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Enter a heading of at most 200 characters.').waitFor();
    await page.getByText('Use a complete address that begins with').waitFor();
    expect(await pageOf(id)).toMatchObject({ title: 'Unchanged' });
  });

  test('asks before what was changed is lost', async () => {
    const page = await pages.open(`/codes/${await createPage('Careful')}`);
    await page.getByRole('button', { name: 'Edit landing page' }).press('Enter');
    const heading = page.getByLabel('Heading');
    await heading.fill('Careful, changed');
    await page.keyboard.press('Escape');
    const question = page.getByRole('alertdialog', { name: 'Discard what you have entered?' });
    await question.getByRole('button', { name: 'Cancel' }).press('Enter');
    expect(await heading.inputValue()).toBe('Careful, changed');
    await page.mouse.click(2, 2);
    expect(await heading.inputValue()).toBe('Careful, changed');
    await page.getByRole('dialog').getByRole('button', { name: 'Close' }).press('Enter');
    await question.getByRole('button', { name: 'Discard' }).press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await page.close();
  });

  test('moves a link further with each press of the same key', async () => {
    const page = await pages.open(`/codes/${await createPage('Moved')}`);
    await page.getByRole('button', { name: 'Edit landing page' }).press('Enter');
    await page.getByRole('button', { name: 'Add a link' }).press('Enter');
    await page.getByLabel('Link 3: text').fill('Hours');
    const labels = async () => Promise.all([1, 2, 3].map((n) => page.getByLabel(`Link ${n}: text`).inputValue()));
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label'));
    await page.getByRole('button', { name: 'Move link 3 up' }).press('Enter');
    await expect.poll(focused).toBe('Move link 2 up');
    await page.keyboard.press('Enter');
    await expect.poll(focused).toBe('Move link 1 down');
    expect(await labels()).toEqual(['Hours', 'Menu', 'Map']);
    await page.close({ runBeforeUnload: false });
  });

  test('fits on a narrow phone', async () => {
    const page = await pages.open(`/codes/${await createPage('Narrow')}`, {
      context: { viewport: { width: 320, height: 640 } },
    });
    await page.locator('iframe').waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
  });

  test('is accessible', async () => {
    const page = await pages.open(`/codes/${await createPage('Accessible')}`);
    await page.getByRole('button', { name: 'Edit landing page' }).press('Enter');
    await page.getByRole('dialog').waitFor();
    await expectAccessible(page);
  });
});
