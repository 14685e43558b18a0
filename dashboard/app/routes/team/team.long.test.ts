import { beforeAll, describe, expect, test } from 'vitest';
import { AccountsService, Role } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CHROMIUM } from '../../../../test/harness/browser.ts';
import { expectAccessible } from '../../accessible.fixture.ts';
import { type DashboardPages, holdCalls, startPages } from '../../pages.fixture.ts';

describe.skipIf(!CHROMIUM)('the team', () => {
  let pages: DashboardPages;
  beforeAll(async () => {
    pages = await startPages({ gateways: 0 });
  });

  test('gets, changes and loses a member by keyboard', async () => {
    const page = await pages.open('/team');
    await page.getByText('You are the only owner.').waitFor();
    await page.getByRole('button', { name: 'Add a member' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('textbox', { name: 'E-mail address' }).waitFor();
    await page.keyboard.type('owner@harbour.example');
    await page.keyboard.press('Enter');
    await page.getByText('owner@harbour.example is already a member of this account.').waitFor();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('ana@harbour.example');
    await page.keyboard.press('Enter');
    const row = page.getByRole('row').filter({ hasText: 'ana@harbour.example' });
    await row.waitFor();
    await expectAccessible(page);

    await row.getByRole('button', { name: 'Role of ana@harbour.example' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('option', { name: 'Owner' }).waitFor();
    await page.keyboard.press('End');
    await page.keyboard.press('Enter');
    const question = page.getByRole('alertdialog', { name: 'Make ana@harbour.example an owner?' });
    await question.getByRole('button', { name: 'Make an owner' }).press('Enter');
    await page.getByText('ana@harbour.example is now: Owner').waitFor();
    const roleOf = async (email: string) =>
      (await pages.client(AccountsService).listMembers({})).members.find((each) => each.email === email)?.role;
    expect(await roleOf('ana@harbour.example')).toBe(Role.OWNER);
    await page.getByText('You are the only owner.').waitFor({ state: 'hidden' });
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await page.getByText('ana@harbour.example is now: Editor').waitFor();
    expect(await roleOf('ana@harbour.example')).toBe(Role.EDITOR);

    await page.getByRole('button', { name: 'Remove: ana@harbour.example' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('alertdialog').getByRole('button', { name: 'Remove' }).focus();
    await page.keyboard.press('Enter');
    await row.waitFor({ state: 'detached' });
    expect(await roleOf('ana@harbour.example')).toBeUndefined();
    await page.close();
  });

  test('keeps what is typed into a dialog when the call of an earlier one ends', async () => {
    const accounts = pages.client(AccountsService);
    await accounts.addMember({ email: 'ben@harbour.example', role: Role.OWNER });
    const page = await pages.open('/team');
    const add = await holdCalls(page, /AddMember/);
    const remove = await holdCalls(page, /RemoveMember/);
    await page.getByRole('button', { name: 'Add a member' }).click();
    const email = page.getByRole('dialog').getByRole('textbox', { name: 'E-mail address' });
    await email.fill('slow@harbour.example');
    await email.press('Enter');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Add a member' }).click();
    await email.fill('next@harbour.example');
    add();
    await page.getByText('slow@harbour.example has been added').waitFor();
    await page.waitForTimeout(300);
    expect(await email.inputValue()).toBe('next@harbour.example');
    await page.getByRole('button', { name: 'Cancel' }).click();

    await page.getByRole('button', { name: 'Remove: slow@harbour.example' }).click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Leave the account' }).click();
    const name = page.getByRole('alertdialog').getByRole('textbox');
    await name.fill('Harbour');
    remove();
    await page.getByText('slow@harbour.example has been removed').waitFor();
    await page.waitForTimeout(300);
    expect(await name.inputValue()).toBe('Harbour');
    await page.close();
    const ben = (await accounts.listMembers({})).members.find((each) => each.email === 'ben@harbour.example');
    await accounts.removeMember({ id: ben?.id ?? '' });
  });

  test('is told who was added, and another address that was typed meanwhile stays', async () => {
    const accounts = pages.client(AccountsService);
    const page = await pages.open('/team');
    const add = await holdCalls(page, /AddMember/);
    await page.getByRole('button', { name: 'Add a member' }).click();
    const email = page.getByRole('dialog').getByRole('textbox', { name: 'E-mail address' });
    await email.fill('first@harbour.example');
    await email.press('Enter');
    await email.fill('second@harbour.example');
    add();
    await page.getByText('first@harbour.example has been added').waitFor();
    await page.waitForTimeout(300);
    expect(await email.inputValue()).toBe('second@harbour.example');
    await email.press('Enter');
    await page.getByText('second@harbour.example has been added').waitFor();
    await email.waitFor({ state: 'detached' });
    await page.close();
    for (const member of (await accounts.listMembers({})).members) {
      if (/^(first|second)@/.test(member.email)) await accounts.removeMember({ id: member.id });
    }
  });

  test('takes back a role although an answer was lost, but not one that another person has changed since', async () => {
    const accounts = pages.client(AccountsService);
    const email = 'cora@harbour.example';
    const id = (await accounts.addMember({ email, role: Role.VIEWER })).member?.id ?? '';
    const roleNow = async () => (await accounts.listMembers({})).members.find((each) => each.id === id)?.role;
    const page = await pages.open('/team');
    const role = page.getByRole('button', { name: `Role of ${email}` });
    await role.press('ArrowRight');
    await page.getByText(`${email} is now: Editor`).waitFor();
    await accounts.updateMember({ id, role: Role.ADMIN });
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await page.getByText(`Someone else has changed the role of ${email}`).waitFor();
    expect(await roleNow()).toBe(Role.ADMIN);

    await role.getByText('Admin').waitFor();
    await role.press('ArrowLeft');
    await page.getByText(`${email} is now: Editor`).waitFor();
    await page.route(/UpdateMember/, (route) => route.fetch().then(() => route.abort()), { times: 1 });
    await page.getByRole('button', { name: 'Undo' }).press('Enter');
    await page.getByRole('button', { name: 'Try again' }).press('Enter');
    await page.getByText(`${email} is now: Admin`).waitFor();
    expect(await roleNow()).toBe(Role.ADMIN);
    await page.close();
    await accounts.removeMember({ id });
  });

  test('is renamed', async () => {
    const page = await pages.open('/team');
    await page.getByRole('textbox', { name: 'Name of the account' }).focus();
    await page.keyboard.press('Control+a');
    await page.keyboard.type('Harbour Kitchens Ltd');
    await page.keyboard.press('Enter');
    await page.getByRole('banner').getByText('Harbour Kitchens Ltd').waitFor();
    await page.close();
  });

  test('asks people who change their own role', async () => {
    const page = await pages.open('/team', { role: Role.ADMIN });
    const own = page.getByRole('button', { name: 'Role of admin@harbour.example' });
    await own.focus();
    await page.keyboard.press('ArrowLeft');
    const question = page.getByRole('alertdialog', { name: 'Change your own role to Editor?' });
    await question.getByRole('button', { name: 'Cancel' }).click();
    await question.waitFor({ state: 'detached' });
    await own.getByText('Admin').waitFor();
    await own.focus();
    await page.keyboard.press('ArrowLeft');
    await question.getByRole('button', { name: 'Change my role' }).click();
    await page.getByText('admin@harbour.example is now: Editor').waitFor();
    await own.waitFor({ state: 'detached' });
    const accounts = pages.client(AccountsService);
    const self = (await accounts.listMembers({})).members.find(({ email }) => email === 'admin@harbour.example');
    await accounts.updateMember({ id: self?.id ?? '', role: Role.ADMIN });
    await page.close();
  });

  test('can be left', async () => {
    const page = await pages.open('/team', { role: Role.ADMIN });
    await page.getByRole('button', { name: 'Leave the account' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('alertdialog').waitFor();
    await page.keyboard.type('Harbour Kitchens Ltd');
    await page.getByRole('alertdialog').getByRole('button', { name: 'Leave the account' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Sign in to Signpost' }).waitFor();
    await page.close();
  });

  test('is shown to a viewer, in German, without buttons to change it', async () => {
    const page = await pages.open('/team', { role: Role.VIEWER, context: { locale: 'de-DE' } });
    await page.getByText('Um das Konto zu verlassen').waitFor();
    expect(await page.getByRole('button', { name: /Rolle|Entfernen|hinzufügen/ }).count()).toBe(0);
    await expectAccessible(page);
    await page.close();
  });

  test('is named in full in dialogs, whose buttons stay within them', async () => {
    const accounts = pages.client(AccountsService);
    await accounts.renameAccount({ name: 'W'.repeat(200) });
    const page = await pages.open('/team', { context: { viewport: { width: 320, height: 640 } } });
    await page.getByRole('button', { name: 'Close the account' }).press('Enter');
    const dialog = page.getByRole('alertdialog');
    const { x = 0, width = 0 } = (await dialog.getByRole('button', { name: 'Cancel' }).boundingBox()) ?? {};
    expect(x + width).toBeLessThan(320);
    expect(await dialog.evaluate((element) => element.scrollWidth - element.clientWidth)).toBe(0);
    await accounts.renameAccount({ name: 'Harbour Kitchens Ltd' });
    await page.close();
  });

  test('is closed by an owner who types its name', async () => {
    const page = await pages.open('/team');
    await page.getByRole('button', { name: 'Close the account' }).press('Enter');
    const dialog = page.getByRole('alertdialog');
    await dialog.waitFor();
    await expectAccessible(page);
    const button = dialog.getByRole('button', { name: 'Close the account' });
    expect(await button.isDisabled()).toBe(true);
    // What was typed and chosen is gone after the dialog was closed.
    const deleteData = dialog.getByRole('checkbox');
    for (const close of ['Cancel', 'Close']) {
      await page.keyboard.type('Harbour Kitchens Ltd');
      await deleteData.press('Space');
      expect([await button.isDisabled(), await deleteData.isChecked()]).toEqual([false, true]);
      await dialog.getByRole('button', { name: close, exact: true }).press('Enter');
      await dialog.waitFor({ state: 'hidden' });
      await page.getByRole('button', { name: 'Close the account' }).press('Enter');
      await dialog.waitFor();
      expect([await button.isDisabled(), await deleteData.isChecked()]).toEqual([true, false]);
    }
    const other = await pages.open('/codes', { role: Role.VIEWER });
    await other.getByRole('heading', { level: 1 }).waitFor();
    await page.keyboard.type('Harbour Kitchens Ltd');
    await button.press('Enter');
    await page.getByRole('heading', { name: 'Sign in to Signpost' }).waitFor();
    // The pages of other members are closed with their next call.
    await other.getByRole('navigation').getByRole('link', { name: 'Webhooks' }).click();
    await other.getByRole('heading', { name: 'Sign in to Signpost' }).waitFor();
    await other.close();
    const { account } = await pages.client(AccountsService).getAccount({});
    expect(account?.closedAt).toBeDefined();
    await page.close();
  });
});
