import { readFile } from 'node:fs/promises';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { Locator, Page } from 'playwright-core';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { AccountsService, Plan, Role } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { type Code, CodesService } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { Page as TargetPage } from '../../../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { TargetsService } from '../../../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { axeFindings } from '../../../../test/harness/axe.ts';
import { CHROMIUM } from '../../../../test/harness/browser.ts';
import { comeBack, type DashboardPages, holdCalls, startPages, streamOf } from '../../pages.fixture.ts';
import { CONDITIONS } from './policy-draft.ts';

/** The page of one code: its target and what it led to before, its files, its scans. */

/** What the core alone knows of an address. */
const OWN_HOST = 'must not be a scan URL of this platform.';

describe.skipIf(!CHROMIUM)('the page of one code', () => {
  let pages: DashboardPages;
  beforeAll(async () => {
    pages = await startPages();
  });

  const newCode = async (name: string): Promise<Code> => {
    const { code } = await pages.client(CodesService).createCode({ targetUrl: 'https://example.com/first', name });
    if (!code) throw new Error('no code was created');
    return code;
  };
  const targetOf = async ({ id }: Code) => (await pages.client(TargetsService).getTarget({ id })).target;

  /** Presses a button as the keyboard does. */
  const press = async (page: Page, name: string) => {
    await page.getByRole('button', { name, exact: true }).focus();
    await page.keyboard.press('Enter');
  };

  test('changes the target with a rule, and rolls it back, by keyboard', async () => {
    const code = await newCode('Lunch menu');
    const page = await pages.open(`/codes/${code.id}`);
    await page.getByRole('heading', { level: 1, name: 'Lunch menu' }).waitFor();
    await press(page, 'Change target');
    const url = page.getByRole('textbox', { name: 'Target URL' });
    await expect.poll(() => url.evaluate((field) => field === document.activeElement)).toBe(true);
    await page.keyboard.press('Control+a');
    await page.keyboard.type('ftp://example.com');
    await page.keyboard.press('Enter');
    await page.getByText('Use a complete address that begins with https:// or http://.').waitFor();
    await url.focus();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('https://example.com/second');

    await press(page, 'Add a rule');
    const rule = page.getByRole('group', { name: 'Rule 1' });
    await press(page, 'Add a condition');
    await page.getByRole('menuitem', { name: 'Devices' }).focus();
    await page.keyboard.press('Enter');
    await rule.getByRole('button', { name: 'Tablet' }).focus();
    await page.keyboard.press('Space');
    await rule.getByRole('textbox', { name: 'Target URL' }).focus();
    await page.keyboard.type('https://example.com/tablets');
    await page.getByRole('region', { name: 'Preview' }).getByText('https://example.com/second').waitFor();
    await press(page, 'Save target');
    await page.getByText('Saved as version 2.').waitFor();
    const target = await targetOf(code);
    expect(target?.targetUrl).toBe('https://example.com/second');
    expect(target?.policy?.rules[0]?.when?.devices).toEqual(['tablet']);

    await press(page, 'Go back to this (Version 1)');
    await page.getByText('The target is as in version 1 again.').waitFor();
    const first = await targetOf(code);
    expect(first).toMatchObject({ version: 3, targetUrl: 'https://example.com/first' });
    expect(first?.policy).toBeUndefined();
    await page.getByRole('button', { name: 'Undo' }).last().focus();
    await page.keyboard.press('Enter');
    await expect.poll(async () => (await targetOf(code))?.targetUrl).toBe('https://example.com/second');
  });

  test('shows its target on a tablet without scrolling far, and is printed without fields', async () => {
    const { id } = await newCode('Poster');
    const outcome = { kind: { case: 'page', value: TargetPage.PAUSED } } as const;
    await pages
      .client(TargetsService)
      .setTarget({ id, policy: { rules: [{ when: { devices: ['tablet'] }, outcome }] } });
    const page = await pages.open(`/codes/${id}`);
    await page.setViewportSize({ width: 700, height: 900 });
    const image = page.getByRole('img', { name: 'Poster' });
    await expect.poll(async () => (await image.boundingBox())?.width).toBeLessThanOrEqual(320);
    const fields = [page.getByRole('button', { name: 'Format' }), page.getByRole('textbox', { name: 'Language' })];
    for (const field of fields) await field.waitFor();
    await page.emulateMedia({ media: 'print' });
    for (const field of fields) await field.waitFor({ state: 'hidden' });
    expect(await image.isVisible()).toBe(true);
    await page.close();
  });

  test('says of a paused code what its scans show now, whatever its rules', async () => {
    const { id } = await newCode('Closed');
    const rules = [{ outcome: { kind: { case: 'targetUrl', value: 'https://example.com/open' } as const } }];
    await pages.client(TargetsService).setTarget({ id, policy: { rules } });
    const page = await pages.open(`/codes/${id}`);
    const preview = page.getByRole('region', { name: 'Preview' });
    await preview.getByText('This visitor lands on').waitFor();
    await press(page, 'Pause');
    await preview.getByText('The code is paused: its scans show the “paused” page.').waitFor();
    await preview.getByText('https://example.com/open').waitFor();
    await page.close();
  });

  test('previews nothing of one visitor while the next one is looked up', async () => {
    const { id } = await newCode('Languages');
    const outcome = { kind: { case: 'targetUrl', value: 'https://example.com/deutsch' } } as const;
    await pages.client(TargetsService).setTarget({ id, policy: { rules: [{ when: { languages: ['de'] }, outcome }] } });
    const page = await pages.open(`/codes/${id}`);
    const preview = page.getByRole('region', { name: 'Preview' });
    await preview.getByText('https://example.com/first').waitFor();
    const answer = await holdCalls(page, /PreviewTarget/);
    await preview.getByRole('textbox', { name: 'Language' }).fill('de');
    await expect.poll(() => preview.getByRole('status').textContent()).toBe('This visitor lands on…');
    answer();
    await preview.getByText('https://example.com/deutsch').waitFor();
    await preview.getByText('Rule 1 decides.').waitFor();
    await page.close();
  });

  test('goes back to a version once if its button is pressed twice', async () => {
    const code = await newCode('Twice');
    await pages.client(TargetsService).setTarget({ id: code.id, targetUrl: 'https://example.com/second' });
    const page = await pages.open(`/codes/${code.id}`);
    const calls = vi.fn();
    page.on('request', (request) => request.url().includes('/RollBackTarget') && calls());
    const answer = await holdCalls(page, /RollBackTarget/);
    await page.getByRole('button', { name: 'Go back to this (Version 1)' }).dblclick();
    answer();
    await page.getByText('The target is as in version 1 again.').waitFor();
    await page.getByRole('button', { name: 'Go back to this (Version 2)' }).waitFor();
    expect(calls).toHaveBeenCalledOnce();
    expect(await targetOf(code)).toMatchObject({ version: 3, targetUrl: 'https://example.com/first' });
    await page.close();
  });

  test('changes a target with a schedule, and keeps its instants', async () => {
    const code = await newCode('Opening');
    const from = timestampFromDate(new Date('2027-10-31T01:30:00.123Z'));
    const policy = {
      rules: [{ when: { from }, outcome: { kind: { case: 'page', value: TargetPage.GONE } as const } }],
    };
    await pages.client(TargetsService).setTarget({ id: code.id, policy });
    const page = await pages.open(`/codes/${code.id}`);
    await press(page, 'Change target');
    await page.getByText('The second one is meant.').waitFor();
    await page.getByRole('textbox', { name: 'Target URL' }).first().fill('https://example.com/soon');
    await press(page, 'Save target');
    await page.getByText('Saved as version 3.').waitFor();
    const target = await targetOf(code);
    expect(target?.targetUrl).toBe('https://example.com/soon');
    expect(target?.policy?.rules[0]?.when?.from).toEqual(from);
    await page.close();
  });

  test('keeps what was typed when another person has changed the target meanwhile', async () => {
    const code = await newCode('Contested');
    const page = await pages.open(`/codes/${code.id}`);
    await press(page, 'Change target');
    await page.getByRole('textbox', { name: 'Target URL' }).fill('https://example.com/mine');
    await pages.client(TargetsService).setTarget({ id: code.id, targetUrl: 'https://example.com/theirs' });
    // The page may have read the other change before.
    await Promise.all([page.waitForResponse(/GetTarget/), comeBack(page)]);
    await page.getByText('https://example.com/theirs').waitFor();
    await press(page, 'Save target');
    await page.getByText('Someone else changed this target meanwhile.').waitFor();
    expect((await targetOf(code))?.targetUrl).toBe('https://example.com/theirs');
    await press(page, 'Save target');
    await page.getByText('Saved as version 3.').waitFor();
    expect((await targetOf(code))?.targetUrl).toBe('https://example.com/mine');
    await press(page, 'Undo');
    await expect.poll(async () => (await targetOf(code))?.targetUrl).toBe('https://example.com/theirs');
  });

  test('keeps what is typed into the form when the call of one that was cancelled ends', async () => {
    const code = await newCode('Slow');
    const page = await pages.open(`/codes/${code.id}`);
    const save = await holdCalls(page, /SetTarget/);
    const url = page.getByRole('textbox', { name: 'Target URL' });
    await press(page, 'Change target');
    await url.fill('https://example.com/slow');
    await press(page, 'Save target');
    await press(page, 'Cancel');
    await press(page, 'Change target');
    await url.fill('https://example.com/next');
    save();
    await page.getByText('Saved as version 2.').waitFor();
    await page.waitForTimeout(300);
    expect(await url.inputValue()).toBe('https://example.com/next');
    await page.close();
  });

  test('shows a target that was saved although the answer was lost, and does not take it for another person’s', async () => {
    const code = await newCode('Lost');
    const page = await pages.open(`/codes/${code.id}`);
    const loseAnswer = (method: RegExp) =>
      page.route(method, (route) => route.fetch().then(() => route.abort()), { times: 1 });
    await press(page, 'Change target');
    await page.getByRole('textbox', { name: 'Target URL' }).fill('https://example.com/lost');
    await loseAnswer(/SetTarget/);
    await press(page, 'Save target');
    await page.getByText('Signpost is unavailable at the moment.').waitFor();
    await page.getByText('https://example.com/lost').waitFor();
    await press(page, 'Save target');
    await page.getByText('Saved as version 2.').waitFor();
    await page.getByRole('link', { name: 'https://example.com/lost' }).waitFor();
    await loseAnswer(/RollBackTarget/);
    await press(page, 'Undo');
    await press(page, 'Try again');
    await page.getByText('The target is as in version 1 again.').waitFor();
    expect(await targetOf(code)).toMatchObject({ version: 3, targetUrl: 'https://example.com/first' });
    await press(page, 'Dismiss');
    await press(page, 'Go back to this (Version 1)');
    await page.getByText('The target is like this already.').waitFor();
    expect(await page.getByRole('button', { name: 'Undo' }).count()).toBe(0);
    await page.close();
  });

  test('shows a change before the core has made it, and as it was if that fails', async () => {
    const { id } = await newCode('Impatient');
    const page = await pages.open(`/codes/${id}`);
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    const fail = Promise.withResolvers<void>();
    await page.route(/UpdateCodes?$/, async (route) => {
      await fail.promise;
      await route.abort();
    });
    // Nor does it vanish with what was being read before.
    const read = Promise.withResolvers<void>();
    await page.route(
      /GetCode$/,
      async (route) => {
        const response = await route.fetch();
        await read.promise;
        await route.fulfill({ response }).catch(() => undefined);
      },
      { times: 1 },
    );
    const reading = page.waitForRequest(/GetCode$/);
    await comeBack(page);
    await reading;
    await press(page, 'Pause');
    await page.getByRole('button', { name: 'Resume' }).waitFor();
    read.resolve();
    await page.waitForTimeout(500);
    expect(await page.getByRole('button', { name: 'Resume' }).isVisible()).toBe(true);
    // Not even the answer about the failure can be read.
    await page.route(/GetCode$/, (route) => route.abort());
    fail.resolve();
    const message = page.getByText('Signpost is unavailable at the moment. Try again');
    await message.waitFor();
    await press(page, 'Dismiss');
    await message.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    await press(page, 'More');
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    const question = page.getByRole('alertdialog');
    await question.getByRole('button', { name: 'Delete' }).click();
    await message.waitFor();
    await page.unrouteAll();
    await question.getByRole('button', { name: 'Delete' }).click();
    await page.getByText('Impatient is deleted.').waitFor();
    await page.close();
  });

  test('keeps the tags that another person has added or removed meanwhile', async () => {
    const codes = pages.client(CodesService);
    const { id } = await newCode('Tagged');
    const tagsOf = async () => [...((await codes.getCode({ id })).code?.tags ?? [])].sort();
    await codes.updateCodes({ ids: [id], addTags: ['old'] });
    const page = await pages.open(`/codes/${id}`);
    await page.getByRole('button', { name: 'Change tags' }).waitFor();
    await codes.updateCodes({ ids: [id], addTags: ['theirs'], removeTags: ['old'] });
    await press(page, 'Change tags');
    await page.keyboard.type('mine');
    await page.getByRole('option', { name: 'mine' }).click();
    await page.getByRole('button', { name: 'Undo' }).waitFor();
    expect(await tagsOf()).toEqual(['mine', 'theirs']);
    await press(page, 'Undo');
    await expect.poll(tagsOf).toEqual(['theirs']);
    await page.close();
  });

  test('does not undo a name or a folder that another person has changed since, nor what they have undone', async () => {
    const codes = pages.client(CodesService);
    const { id } = await newCode('Shared');
    const read = async () => (await codes.getCode({ id })).code;
    const page = await pages.open(`/codes/${id}`);
    const undo = async (change: string) => {
      await page.getByRole('status').filter({ hasText: change }).getByRole('button', { name: 'Undo' }).click();
      await page.getByText('Someone else has changed').waitFor();
      await page.getByRole('button', { name: 'Dismiss' }).last().click();
    };
    await press(page, 'Rename');
    await page.getByRole('textbox', { name: 'Name of the code' }).fill('Mine');
    await page.keyboard.press('Enter');
    await page.getByText('The name is now Mine.').waitFor();
    await codes.updateCode({ id, name: 'Theirs', updateMask: { paths: ['name'] } });
    await undo('The name is now Mine.');
    expect((await read())?.name).toBe('Theirs');

    await press(page, 'Change folder');
    await page.keyboard.type('My folder');
    await page.getByRole('option', { name: 'My folder' }).click();
    await page.getByText('is in My folder.').waitFor();
    await codes.updateCode({ id, folder: 'Their folder', updateMask: { paths: ['folder'] } });
    await undo('is in My folder.');
    expect((await read())?.folder?.name).toBe('Their folder');

    await press(page, 'Pause');
    await page.getByText('is paused.').waitFor();
    await codes.updateCode({ id, paused: false, updateMask: { paths: ['paused'] } });
    await page.getByRole('status').filter({ hasText: 'is paused.' }).getByRole('button', { name: 'Undo' }).click();
    await page.getByText('is active again.').waitFor();
    expect((await read())?.version).toBe(7n);
    await page.close();
  });

  test('undoes its own change only: back to what another person had set meanwhile', async () => {
    const codes = pages.client(CodesService);
    const { id } = await newCode('Seen');
    const read = async () => (await codes.getCode({ id })).code;
    const page = await pages.open(`/codes/${id}`);
    await page.getByRole('heading', { level: 1, name: 'Seen' }).waitFor();
    await codes.updateCode({ id, name: 'Theirs', paused: true, updateMask: { paths: ['name', 'paused'] } });
    await press(page, 'Pause');
    await page.getByText('is paused.').waitFor();
    expect(await page.getByRole('button', { name: 'Undo' }).count()).toBe(0);
    await press(page, 'Rename');
    await page.getByRole('textbox', { name: 'Name of the code' }).fill('Mine');
    await page.keyboard.press('Enter');
    await page.getByText('The name is now Mine.').waitFor();
    await press(page, 'Undo');
    await expect.poll(async () => (await read())?.name).toBe('Theirs');
    expect((await read())?.paused).toBe(true);
    await page.close();
  });

  test('keeps a new name that could not be saved', async () => {
    const { id } = await newCode('Old');
    const page = await pages.open(`/codes/${id}`);
    await page.waitForLoadState('networkidle');
    await press(page, 'Rename');
    const field = page.getByRole('textbox', { name: 'Name of the code' });
    await field.fill('New');
    await page.route('**/UpdateCode', (route) => route.abort());
    // What is read again after the failure is not answered.
    await page.route('**/ListFolders', () => undefined, { times: 1 });
    await page.keyboard.press('Enter');
    await page.getByText('Signpost is unavailable at the moment.').waitFor();
    expect(await field.inputValue()).toBe('New');
    await page.unroute('**/UpdateCode');
    await field.press('Enter');
    await page.getByText('The name is now New.').waitFor();
    await field.waitFor({ state: 'detached' });
    await page.close();
  });

  test('gets a new name of up to 200 characters, whichever these are', async () => {
    const { id } = await newCode('🦀'.repeat(150));
    const page = await pages.open(`/codes/${id}`);
    await press(page, 'Rename');
    const field = page.getByRole('textbox', { name: 'Name of the code' });
    await field.fill('🐟'.repeat(201));
    await page.getByText('A name has at most 200 characters.').waitFor();
    await field.press('Enter');
    await field.fill('🐟'.repeat(200));
    await field.press('Enter');
    await field.waitFor({ state: 'detached' });
    expect((await pages.client(CodesService).getCode({ id })).code?.name).toBe('🐟'.repeat(200));
    await page.close();
  });

  test('saves no condition without a value, and moves errors with their rules', async () => {
    const code = await newCode('Rules');
    const page = await pages.open(`/codes/${code.id}`);
    await press(page, 'Change target');
    await press(page, 'Add a rule');
    const first = page.getByRole('group', { name: 'Rule 1' });
    const condition = first.getByRole('group', { name: /^(Countries|Period|Languages|Devices|Operating systems)$/ });
    await first.getByRole('textbox', { name: 'Target URL' }).fill('nowhere');
    for (const kind of ['Countries', 'Period', 'Languages', 'Devices', 'Operating systems']) {
      await press(page, 'Add a condition');
      await page.getByRole('menuitem', { name: kind }).press('Enter');
      await condition.waitFor();
      await press(page, 'Save target');
      await condition.getByText('Say when it applies, or remove the condition.').waitFor();
      await expect.poll(() => condition.evaluate((e) => e.contains(document.activeElement))).toBe(true);
      await press(page, `Remove condition: ${kind}`);
    }
    await press(page, 'Save target');
    await first.getByText('Use a complete address that begins with https:// or http://.').waitFor();
    const url = first.getByRole('textbox', { name: 'Target URL' });
    // Only the core knows which hosts are its own.
    await url.fill(code.scanUrl);
    await press(page, 'Save target');
    await first.getByText(OWN_HOST).waitFor();
    await expect.poll(() => url.evaluate((field) => field === document.activeElement)).toBe(true);
    await press(page, 'Add a rule');
    const second = page.getByRole('group', { name: 'Rule 2' });
    await second.getByRole('textbox', { name: 'Target URL' }).fill('https://example.com/valid');
    await press(page, 'Move rule 1 down');
    expect(await second.getByRole('textbox', { name: 'Target URL' }).inputValue()).toBe(code.scanUrl);
    expect(await page.getByRole('group').getByText(OWN_HOST).count()).toBe(0);
    expect((await targetOf(code))?.version).toBe(1);
    await page.close();
  });

  test('saves no rule without an address, or whose date is incomplete or does not exist', async () => {
    const code = await newCode('Dates');
    const page = await pages.open(`/codes/${code.id}`);
    await press(page, 'Change target');
    await press(page, 'Add a rule');
    const rule = page.getByRole('group', { name: 'Rule 1' });
    await page.getByText('Rule 1: Enter an address.').waitFor();
    await press(page, 'Save target');
    await rule.getByText('Enter an address.').waitFor();
    await rule.getByRole('textbox', { name: 'Target URL' }).fill('https://example.com/opening');
    await press(page, 'Add a condition');
    await page.getByRole('menuitem', { name: 'Period' }).press('Enter');
    await rule.getByLabel('Until').fill('2027-12-01T10:00');
    const from = rule.getByLabel('From');
    await from.fill('20271-12-01T10:00');
    await rule.getByText('The year must be between 1 and 9999.').waitFor();
    const preview = page.getByRole('region', { name: 'Preview' });
    await preview.getByText('Rule 1: The year must be between 1 and 9999.').waitFor();
    // The clocks of Berlin go from 2 to 3.
    await from.fill('2027-03-28T02:30');
    await rule.getByText('This time does not exist on that day, because the clocks go forward.').waitFor();
    await press(page, 'Save target');
    await expect.poll(() => from.evaluate((field) => field === document.activeElement)).toBe(true);
    await from.fill('');
    await from.focus();
    // A day without a time.
    await page.keyboard.type('01022027');
    await press(page, 'Save target');
    await rule.getByText('The date or the time is missing.').waitFor();
    await expect.poll(() => from.evaluate((field) => field === document.activeElement)).toBe(true);
    expect((await targetOf(code))?.version).toBe(1);
    await from.fill('2027-02-01T10:00');
    await press(page, 'Save target');
    await page.getByText('Saved as version 2.').waitFor();
    await page.close();
  });

  test('shows every operating system of a rule', async () => {
    const code = await newCode('Consoles');
    const outcome = { kind: { case: 'targetUrl', value: 'https://example.com/' } } as const;
    const when = { operatingSystems: ['playstation 4', 'unknown', 'ios'] };
    await pages.client(TargetsService).setTarget({ id: code.id, policy: { rules: [{ when, outcome }] } });
    const page = await pages.open(`/codes/${code.id}`);
    await press(page, 'Change target');
    const systems = page.getByRole('toolbar', { name: 'Operating systems' });
    await systems.getByRole('button', { name: 'playstation 4', pressed: true }).press('Space');
    await systems.getByRole('button', { name: 'Unknown', pressed: true }).waitFor();
    await press(page, 'Save target');
    await page.getByText('Saved as version 3.').waitFor();
    expect((await targetOf(code))?.policy?.rules[0]?.when?.operatingSystems).toEqual(['unknown', 'ios']);
    await page.close();
  });

  test('breaks what has no spaces: names of rules, parameters and reasons', async () => {
    const code = await newCode('Long');
    const outcome = { kind: { case: 'targetUrl', value: 'https://example.com/' } } as const;
    const weekly = { timeZone: 'Europe/Berlin', days: ['mon'], from: '08:00', until: '12:00' };
    const when = { weekly, countries: ['DE', 'AT', 'CH', 'GB', 'FR', 'IT', 'ES'] };
    const policy = { rules: [{ name: 'n'.repeat(64), when, outcome }], parameters: { utm_content: 'v'.repeat(256) } };
    await pages.client(TargetsService).setTarget({ id: code.id, policy, note: 'https://'.padEnd(200, 't') });
    const page = await pages.open(`/codes/${code.id}`);
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByText('https://ttt').waitFor();
    const overflow = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    await expect.poll(overflow).toBeLessThanOrEqual(0);
    // A date with a time is the widest field of the preview.
    const at = page.getByRole('region', { name: 'Preview' }).getByLabel('When');
    for (const width of [1440, 900, 768, 320]) {
      await page.setViewportSize({ width, height: 844 });
      const isInside = () =>
        at.evaluate(
          (e) => e.getBoundingClientRect().right <= (e.closest('section')?.getBoundingClientRect().right ?? 0),
        );
      await expect.poll(isInside, { message: String(width) }).toBe(true);
    }
    await press(page, 'Change target');
    await page.getByRole('button', { name: /^Countries: Germany, Austria, .* and Spain$/ }).waitFor();
    await page.getByRole('button', { name: 'Country: Unknown' }).waitFor();
    await expect.poll(overflow).toBeLessThanOrEqual(0);
    const rule = page.getByRole('group', { name: 'Rule 1' });
    for (const width of [1440, 1024, 768, 320]) {
      await page.setViewportSize({ width, height: 844 });
      for (const field of ['Time zone', 'Target URL']) {
        const fieldWidth = () => rule.getByRole('textbox', { name: field }).evaluate((element) => element.clientWidth);
        await expect.poll(fieldWidth, { message: `${field} at ${width}` }).toBeGreaterThan(150);
      }
    }
    await page.close();
  });

  test('keeps the focus where the next step is', async () => {
    const code = await newCode('Focused');
    const page = await pages.open(`/codes/${code.id}`);
    const focused = () => page.evaluate(() => document.activeElement?.textContent || document.activeElement?.id);
    await press(page, 'More');
    await page.getByRole('menuitem', { name: 'Rename' }).waitFor();
    expect(await axeFindings(page, (axe) => axe.withRules(['aria-dialog-name']))).toEqual([]);
    await page.getByRole('menuitem', { name: 'Rename' }).press('Enter');
    await page.getByRole('textbox', { name: 'Name of the code' }).waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(focused).toBe('More');
    await press(page, 'Change target');
    await press(page, 'Cancel');
    await expect.poll(focused).toBe('Change target');
    await press(page, 'More');
    await page.getByRole('menuitem', { name: 'Delete' }).press('Enter');
    await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).press('Enter');
    await page.getByText('This code is deleted.').waitFor();
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('content');
    await page.reload();
    await press(page, 'Restore');
    await page.getByRole('button', { name: 'More' }).waitFor();
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('content');
    await page.getByRole('main').getByRole('link', { name: 'All codes' }).press('Enter');
    await page.waitForURL('**/codes');
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('content');
    await page.close();
  });

  test('keeps the focus beside what is removed from the rules of a target', async () => {
    const code = await newCode('Removed');
    const page = await pages.open(`/codes/${code.id}`);
    const focused = () =>
      page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent);
    await press(page, 'Change target');
    await press(page, 'Add a rule');
    await press(page, 'Add a condition');
    await page.getByRole('menuitem', { name: 'Devices' }).press('Enter');
    await press(page, 'Remove condition: Devices');
    await expect.poll(focused).toBe('Add a condition');
    await press(page, 'Add a rule');
    await press(page, 'Move rule 2 up');
    await expect.poll(focused).toBe('Move rule 1 down');
    await press(page, 'Remove rule 1');
    await expect.poll(focused).toBe('Add a rule');
    // A button that is gone with the last that it can add passes the focus to that.
    for (const _ of CONDITIONS) {
      await press(page, 'Add a condition');
      await page.getByRole('menuitem').first().press('Enter');
      await page.getByRole('menu').waitFor({ state: 'detached' });
    }
    const group = () =>
      page.evaluate(() => document.activeElement?.closest('fieldset')?.firstElementChild?.textContent);
    await expect.poll(group).toBe(await page.locator('fieldset fieldset > legend').last().textContent());
    await page.getByRole('button', { name: /Leads to/ }).press('Enter');
    await page.getByRole('option', { name: /[Ss]plit/ }).press('Enter');
    for (let variants = 2; variants < 10; variants++) await press(page, 'Add a variant');
    await expect.poll(group).toBe('Variant 10');
    await press(page, 'Cancel');
    await page.close();
  });

  test('keeps what is typed into the target while it is being saved, and saves it next', async () => {
    const code = await newCode('Typed on');
    const page = await pages.open(`/codes/${code.id}`);
    await press(page, 'Change target');
    const url = page.getByRole('textbox', { name: 'Target URL' });
    await url.fill('https://example.com/second');
    const answer = await holdCalls(page, /SetTarget/);
    await url.press('Enter');
    await url.fill('https://example.com/third');
    answer();
    await page.getByText('Saved as version 2.').waitFor();
    expect(await url.inputValue()).toBe('https://example.com/third');
    expect(await targetOf(code)).toMatchObject({ version: 2, targetUrl: 'https://example.com/second' });
    await url.press('Enter');
    await page.getByText('Saved as version 3.').waitFor();
    await url.waitFor({ state: 'detached' });
    expect(await targetOf(code)).toMatchObject({ version: 3, targetUrl: 'https://example.com/third' });
    await page.close();
  });

  test('sends a target once until it is answered, whatever is done with its rules', async () => {
    const code = await newCode('Sent once');
    const page = await pages.open(`/codes/${code.id}`);
    await press(page, 'Change target');
    const url = page.getByRole('textbox', { name: 'Target URL' });
    await url.fill('https://example.com/once');
    const answer = await holdCalls(page, /SetTarget/);
    await url.press('Enter');
    await press(page, 'Add a rule');
    await press(page, 'Remove rule 1');
    await url.fill('https://example.com/next');
    const calls = vi.fn();
    page.on('request', (request) => request.url().includes('/SetTarget') && calls());
    await url.press('Enter');
    answer();
    await page.getByText('Saved as version 2.').waitFor();
    expect(calls).not.toHaveBeenCalled();
    await url.press('Enter');
    await page.getByText('Saved as version 3.').waitFor();
    expect(await targetOf(code)).toMatchObject({ version: 3, targetUrl: 'https://example.com/next' });
    await page.close();
  });

  test('asks before what was typed into the target is lost', async () => {
    const code = await newCode('Unsaved');
    const page = await pages.open(`/codes/${code.id}`);
    await press(page, 'Change target');
    await page.getByRole('textbox', { name: 'Target URL' }).fill('https://example.com/typed');
    const batches = page.getByRole('navigation').getByRole('link', { name: 'Batches' });
    await batches.press('Enter');
    await page.getByRole('alertdialog', { name: 'Discard what you have entered?' }).waitFor();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Cancel' }).press('Enter');
    expect(await page.getByRole('textbox', { name: 'Target URL' }).inputValue()).toBe('https://example.com/typed');
    await batches.press('Enter');
    await page.getByRole('alertdialog').getByRole('button', { name: 'Discard' }).press('Enter');
    await page.waitForURL('**/batches');
    await page.close();
  });

  test('messages can be reached by a key, used beside an open dialog, and stay while they are', async () => {
    const code = await newCode('Messages');
    const page = await pages.open(`/codes/${code.id}`);
    await page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
    await page.clock.install();
    await press(page, 'Pause');
    const message = page.getByText('Messages is paused.');
    const undo = page.getByRole('status', { name: 'F6' }).getByRole('button', { name: 'Undo' });
    const hasFocus = (element: Locator) => element.evaluate((each) => each === document.activeElement);
    await message.waitFor();
    // Long enough to hear of it, and to get there.
    await page.clock.fastForward('00:20');
    await page.keyboard.press('F6');
    expect(await hasFocus(undo)).toBe(true);
    await page.clock.fastForward('05:00');
    await page.keyboard.press('Escape');
    expect(await hasFocus(page.getByRole('button', { name: 'Resume' }))).toBe(true);
    await message.hover();
    await page.clock.fastForward('05:00');
    await press(page, 'Rename');
    const name = page.getByRole('textbox', { name: 'Name of the code' });
    await name.fill('Half typed');
    await page.keyboard.press('F6');
    expect(await hasFocus(undo)).toBe(true);
    await page.keyboard.press('Enter');
    await expect.poll(() => hasFocus(name)).toBe(true);
    await expect.poll(async () => (await pages.client(CodesService).getCode({ id: code.id })).code?.paused).toBe(false);
    expect(await name.inputValue()).toBe('Half typed');
    const resumed = page.getByText('Messages is active again.');
    await resumed.waitFor();
    await page.mouse.move(0, 0);
    await page.clock.fastForward('05:00');
    await resumed.waitFor({ state: 'hidden' });
    await page.keyboard.press('Escape');
    // The oldest of more than five messages with a button makes room.
    for (const [presses, action] of ['Pause', 'Resume', 'Pause', 'Resume', 'Pause', 'Resume'].entries()) {
      await press(page, action);
      await page.getByRole('button', { name: action, exact: true }).waitFor({ state: 'hidden' });
      await expect.poll(() => undo.count()).toBe(Math.min(presses + 1, 5));
    }
    await page.waitForTimeout(500);
    expect(await undo.count()).toBe(5);
    // On a screen that is enlarged to 400 % the newest is shown, and the oldest can be scrolled to.
    await page.setViewportSize({ width: 320, height: 256 });
    const dismiss = page.getByRole('status', { name: 'F6' }).getByRole('button', { name: 'Dismiss' });
    const top = async (button: Locator) => (await button.boundingBox())?.y ?? Number.NaN;
    expect(await top(dismiss.last())).toBeLessThan(256);
    await dismiss.first().focus();
    expect(await top(dismiss.first())).toBeGreaterThanOrEqual(0);
    await page.close();
  });

  test('offers the image in all formats', async () => {
    const code = await newCode('Poster');
    const page = await pages.open(`/codes/${code.id}`);
    const download = async () => {
      const [file] = await Promise.all([page.waitForEvent('download'), press(page, 'Download')]);
      return { name: file.suggestedFilename(), content: await readFile(await file.path()) };
    };
    const choose = async (option: string) => {
      await page.getByRole('button', { name: 'Format' }).click();
      await page.getByRole('option', { name: option }).click();
    };
    const png = await download();
    expect(png.name).toMatch(/\.png$/);
    expect(png.content.subarray(1, 4).toString()).toBe('PNG');
    await choose('SVG');
    expect((await download()).content.toString()).toContain('<svg');
    await choose('PDF for print');
    const pdf = await download();
    expect(pdf.name).toBe(`${code.shortCode}.pdf`);
    // 40 mm, in points.
    expect(pdf.content.toString('latin1')).toContain('/MediaBox[0 0 113.3858 113.3858]');
    const account = pages.client(AccountsService);
    await account.updateAccount({ plan: Plan.FREE });
    await choose('SVG');
    await press(page, 'Download');
    await page.getByText('Your plan does not include PNG and SVG files.').waitFor();
    await account.updateAccount({ plan: Plan.BUSINESS });
    await page.close();
  });

  test('describes the modules of a PDF only if it has a width', async () => {
    const page = await pages.open(`/codes/${(await newCode('Narrow')).id}`);
    await page.getByRole('button', { name: 'Format' }).click();
    await page.getByRole('option', { name: 'PDF' }).click();
    const width = page.getByRole('textbox', { name: 'Width' });
    await page.getByText('each module is').waitFor();
    await width.fill('4 cm');
    await page.getByText('Between 10 and').waitFor();
    expect(await page.getByText('each module is').count()).toBe(0);
    await page.close();
  });

  test('renames, pauses, deletes and restores', async () => {
    const code = await newCode('Old name');
    const page = await pages.open(`/codes/${code.id}`);
    await press(page, 'Rename');
    await page.getByRole('textbox', { name: 'Name of the code' }).fill('New name');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('heading', { level: 1, name: 'New name' }).waitFor();
    await press(page, 'Pause');
    await page.getByText('New name is paused.').waitFor();
    await press(page, 'More');
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Delete' }).click();
    await page.getByText('This code is deleted.').waitFor();
    await page.getByRole('button', { name: 'Restore' }).click();
    await page.getByText('New name is restored.').waitFor();
    const { code: restored } = await pages.client(CodesService).getCode({ id: code.id });
    expect(restored).toMatchObject({ name: 'New name', paused: true });
  });

  test('keeps what was entered when another person deletes the code, and saves it once that is restored', async () => {
    const codes = pages.client(CodesService);
    const code = await newCode('Deleted meanwhile');
    const page = await pages.open(`/codes/${code.id}`);
    await press(page, 'Change target');
    const url = page.getByRole('textbox', { name: 'Target URL' });
    await url.fill('https://example.com/entered');
    await codes.deleteCode({ id: code.id });
    await press(page, 'Save target');
    await page.getByText('The code has been deleted meanwhile.').waitFor();
    await comeBack(page);
    await page.getByText('This code is deleted.').waitFor();
    expect(await url.inputValue()).toBe('https://example.com/entered');
    await page.getByRole('button', { name: 'Restore' }).last().press('Enter');
    await page.getByText('The code has been deleted meanwhile.').waitFor({ state: 'detached' });
    await press(page, 'Save target');
    await page.getByText('Saved as version 2.').waitFor();
    expect((await targetOf(code))?.targetUrl).toBe('https://example.com/entered');
    // Also if it is restored elsewhere.
    const seesIt = (isDeleted: boolean) =>
      expect
        .poll(async () => {
          await comeBack(page);
          return page.getByText('This code is deleted.').isVisible();
        })
        .toBe(isDeleted);
    await press(page, 'Change target');
    await url.fill('https://example.com/again');
    await codes.deleteCode({ id: code.id });
    await press(page, 'Save target');
    await page.getByText('The code has been deleted meanwhile.').waitFor();
    await seesIt(true);
    await codes.restoreCode({ id: code.id });
    await seesIt(false);
    await page.getByText('The code has been deleted meanwhile.').waitFor({ state: 'detached' });
    expect(await url.inputValue()).toBe('https://example.com/again');
    // Without the form, the page has the focus.
    await codes.deleteCode({ id: code.id });
    await seesIt(true);
    await press(page, 'Cancel');
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('content');
    // Without anything entered, nothing is offered but to restore it, also while it is read again.
    await page.reload();
    await page.getByText('This code is deleted.').waitFor();
    const release = await holdCalls(page, /GetCode$/);
    const reading = page.waitForRequest(/GetCode$/);
    await comeBack(page);
    await reading;
    await page.waitForTimeout(300);
    expect(await page.getByText('This code is deleted.').isVisible()).toBe(true);
    release();
    expect(await page.getByRole('button', { name: 'Change target' }).count()).toBe(0);
    await page.close();
  });

  test('shows scans as they arrive, also in a browser whose clock is wrong', async () => {
    const code = await newCode('Door');
    const page = await pages.open(`/codes/${code.id}`);
    await page.addInitScript(() => {
      const now = Date.now;
      Date.now = () => now() + 600_000;
    });
    await page.reload();
    await press(page, 'Watch scans live');
    await page.getByText('No scans in the last 5 minutes.').waitFor();
    await fetch(code.scanUrl, {
      redirect: 'manual',
      headers: {
        'user-agent':
          'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1',
      },
    });
    await page.getByRole('cell', { name: 'iOS' }).waitFor();
  });

  test('shows the newest scans in their order, also if an older one is recorded after them', async () => {
    const page = await pages.open(`/codes/${(await newCode('Late')).id}`);
    const begin = Date.now();
    const scan = (second: number) => ({
      id: `scan_${second}`,
      scannedAt: new Date(begin - 60_000 + 1_000 * second).toISOString(),
      browser: `Browser ${second}`,
    });
    const scans = Array.from({ length: 27 }, (_, n) => scan(n));
    const recorded = [scans.toSpliced(20, 1).slice(1), scans.slice(20, 21), scans.slice(0, 1)];
    await page.route(/ExportScans/, (route) => route.fulfill(streamOf({ scans: recorded.shift() ?? [] })));
    await press(page, 'Watch scans live');
    await page.getByText('27 scans').waitFor();
    const browsers = await page.getByRole('cell', { name: /^Browser/ }).allTextContents();
    expect(browsers).toEqual(Array.from({ length: 25 }, (_, n) => `Browser ${26 - n}`));
    await page.close();
  });

  test('leaves no stream of scans open, however many arrive, and reads aloud that they could not be read', async () => {
    const code = await newCode('Stadium');
    const page = await pages.open(`/codes/${code.id}`);
    // As of a code with more scans than one reading takes: the stream goes on after 20,000.
    await page.addInitScript(() => {
      const { fetch } = window;
      let [begun, open] = [0, 0];
      const count = (more: number, ended: number) => {
        begun += more;
        open += more - ended;
        Object.assign(document.documentElement.dataset, { begun, open });
      };
      window.fetch = async (input, init) => {
        if (!String(input).includes('/ExportScans')) return fetch(input, init);
        if (document.documentElement.dataset.fails) return new Response('{}', { status: 503 });
        count(1, 0);
        init?.signal?.addEventListener('abort', () => count(0, 1));
        const scannedAt = new Date().toISOString();
        const scans = Array.from({ length: 20_000 }, (_, n) => ({ id: `scan_${begun}_${n}`, scannedAt }));
        const message = new TextEncoder().encode(JSON.stringify({ scans }));
        const envelope = new Uint8Array(5 + message.length);
        new DataView(envelope.buffer).setUint32(1, message.length);
        envelope.set(message, 5);
        const body = new ReadableStream({ start: (stream) => stream.enqueue(envelope) });
        return new Response(body, { headers: { 'content-type': 'application/connect+json' } });
      };
    });
    await page.reload();
    await press(page, 'Watch scans live');
    const streams = (which: 'begun' | 'open') => async () =>
      Number(await page.locator('html').getAttribute(`data-${which}`));
    await expect.poll(streams('begun')).toBeGreaterThan(2);
    await expect.poll(streams('open')).toBeLessThanOrEqual(1);
    const places = await page.getByRole('status').elementHandles();
    await page.evaluate(() => {
      document.documentElement.dataset.fails = 'true';
    });
    const failed = 'Signpost is unavailable at the moment.';
    await page.getByText(failed).first().waitFor();
    const texts = await Promise.all(places.map((place) => place.textContent()));
    expect(texts.filter((text) => text?.startsWith(failed))).not.toEqual([]);
    await page.close();
  });

  test('asks to sign in when the session ends while scans are watched', async () => {
    const code = await newCode('Watched');
    const page = await pages.open(`/codes/${code.id}`, { context: { locale: 'en-AU' } });
    await press(page, 'Watch scans live');
    await page.getByText('No scans in the last 5 minutes.').waitFor();
    await page.context().clearCookies();
    await page.getByRole('heading', { name: 'Sign in to Signpost' }).waitFor();
    await page.context().close();
  });

  test('gives the focus to the first of the versions that are loaded last', async () => {
    const { id } = await newCode('Often changed');
    for (let version = 2; version <= 26; version++) {
      await pages.client(TargetsService).setTarget({ id, targetUrl: `https://example.com/${version}` });
    }
    const page = await pages.open(`/codes/${id}`);
    await press(page, 'Load more');
    const focused = () => page.evaluate(() => document.activeElement?.closest('li')?.textContent);
    await expect.poll(focused).toMatch(/^Version 1 /);
    await page.getByText('someone who scans on two days counts twice').waitFor();
    await page.close();
  });

  test('offers a viewer nothing to change', async () => {
    const code = await newCode('Only to look at');
    const page = await pages.open(`/codes/${code.id}`, { role: Role.VIEWER });
    await page.getByRole('heading', { name: 'History' }).waitFor();
    for (const name of ['Change target', 'Pause', 'More', 'Rename']) {
      expect(await page.getByRole('button', { name, exact: true }).count(), name).toBe(0);
    }
  });

  test('speaks German', async () => {
    const code = await newCode('Speisekarte');
    const page = await pages.open(`/codes/${code.id}`, { context: { locale: 'de-DE' } });
    await page.getByRole('heading', { name: 'Verlauf' }).waitFor();
    await press(page, 'Ziel ändern');
    await press(page, 'Regel hinzufügen');
    await page.getByRole('textbox', { name: 'Ziel-URL' }).last().fill('https://example.com/abends');
    await press(page, 'Bedingung hinzufügen');
    await page.getByRole('menuitem', { name: 'Wöchentliche Zeiten' }).press('Enter');
    const zone = page.getByRole('textbox', { name: 'Zeitzone' });
    await zone.fill('Berlin');
    await press(page, 'Ziel speichern');
    await page.getByText('„Berlin“ ist keine Zeitzone der IANA-Datenbank.').first().waitFor();
    await expect.poll(() => zone.getAttribute('aria-invalid')).toBe('true');
    await press(page, 'Bedingung hinzufügen');
    await page.getByRole('menuitem', { name: 'Sprachen' }).press('Enter');
    await zone.fill('Europe/Berlin');
    const languages = page.getByRole('textbox', { name: 'Kürzel, durch Kommas getrennt' });
    await languages.fill('deutsch-deutschland');
    await press(page, 'Ziel speichern');
    await page.getByText('Muss Kürzel wie de oder de-DE enthalten, oder *.').first().waitFor();
    await expect.poll(() => languages.getAttribute('aria-invalid')).toBe('true');
    await page.close();
  });
});
