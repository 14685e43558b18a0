import { beforeAll, describe, expect, test } from 'vitest';
import { AccountsService, Role } from '../../../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { WebhooksService } from '../../../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { type Receiver, startReceiver } from '../../../../src/webhooks/receiver.fixture.ts';
import { CHROMIUM } from '../../../../test/harness/browser.ts';
import { expectAccessible } from '../../accessible.fixture.ts';
import { comeBack, type DashboardPages, holdCalls, startPages } from '../../pages.fixture.ts';

describe.skipIf(!CHROMIUM)('webhooks', () => {
  let pages: DashboardPages;
  let receiver: Receiver;
  let status = 204;
  beforeAll(async () => {
    receiver = await startReceiver((_, response) => {
      response.writeHead(status).end(status === 204 ? undefined : 'The database is locked.');
    });
    pages = await startPages({ gateways: 0, env: { WEBHOOKS_ALLOW_PRIVATE: 'true' } });
  });

  test('are added and tested by keyboard, and show what was answered', async () => {
    const page = await pages.open('/webhooks');
    await page.getByRole('heading', { name: 'No endpoints yet' }).waitFor();
    await expectAccessible(page);
    await page.getByRole('button', { name: 'Add an endpoint' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('textbox', { name: 'Address' }).waitFor();
    await page.keyboard.type('nowhere');
    await page.keyboard.press('Enter');
    await page.getByText('Must be an absolute').waitFor();
    await page.keyboard.press('Control+a');
    await page.keyboard.type(`${receiver.url}/hooks`);
    let calls = 0;
    page.on('request', (request) => {
      if (request.url().endsWith('/CreateEndpoint')) calls += 1;
    });
    for (let presses = 0; presses < 3; presses++) await page.keyboard.press('Enter');
    await page.getByText(/^whsec_/).waitFor();
    expect(calls).toBe(1);
    // A secret that is shown once cannot be lost by a key.
    for (const key of ['Escape', 'Control+k']) await page.keyboard.press(key);
    expect(await page.getByRole('searchbox').count()).toBe(0);
    expect(await page.getByRole('alertdialog').getByRole('button', { name: 'Close' }).count()).toBe(0);
    await page.getByText(/^whsec_/).waitFor();
    await page.getByRole('button', { name: 'I have stored it' }).focus();
    await page.keyboard.press('Enter');

    await page.getByRole('heading', { name: `${receiver.url}/hooks` }).waitFor();
    await page.getByText('Working').waitFor();
    await page.getByRole('button', { name: 'Send a test event' }).focus();
    await page.keyboard.press('Enter');
    await page.getByText('The endpoint answered the test event: 204').waitFor();
    status = 500;
    await page.keyboard.press('Enter');
    await page.getByText('The endpoint did not accept the test event: 500').waitFor();
    await expectAccessible(page);

    const deliveries = page.getByRole('row').filter({ hasText: 'webhook.test' });
    await deliveries.filter({ hasText: 'Waiting' }).getByRole('button', { name: 'webhook.test', exact: true }).focus();
    await page.keyboard.press('Enter');
    await page.getByText('The database is locked.').first().waitFor();
    // Without an address: the endpoint may have had another one then.
    const request = page.getByText('{"type":"webhook.test"');
    expect(await request.textContent()).toMatch(/^POST\ncontent-type: /);
    await expectAccessible(page);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: /Status/ }).click();
    await page.getByRole('option', { name: 'Waiting' }).click();
    await deliveries.getByRole('button', { name: 'webhook.test', exact: true }).click();
    await page.getByText('{"type":"webhook.test"').waitFor();
    await page.route(/ListDeliveries/, (route) => route.fulfill({ json: {} }));
    await page.waitForResponse(/ListDeliveries/);
    await page.waitForResponse(/ListAttempts/);
    await page.getByText('{"type":"webhook.test"').waitFor();
    await page.unroute(/ListDeliveries/);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: /Status/ }).click();
    await page.getByRole('option', { name: 'All' }).click();
    status = 204;
    await deliveries.filter({ hasText: 'Waiting' }).getByRole('button', { name: 'Resend' }).focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => deliveries.filter({ hasText: 'Delivered' }).count()).toBe(3);

    // The core resends so many in one call.
    const answers = [{ deliveries: 10_000, more: true }, { deliveries: 3 }];
    await page.route(/ResendFailed/, (route) => route.fulfill({ json: answers.shift() }));
    await page.getByRole('button', { name: 'Resend all failed' }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('alertdialog').getByRole('button', { name: 'Resend all failed' }).focus();
    await page.keyboard.press('Enter');
    await page.getByText('10,003 events will be sent again').waitFor();
    await page.close();
  });

  test('show their secret whatever is pressed before it arrives, and until it was stored', async () => {
    const page = await pages.open('/batches');
    await page.getByRole('navigation').getByRole('link', { name: 'Webhooks' }).click();
    const address = page.getByRole('textbox', { name: 'Address' });
    await page.getByRole('button', { name: 'Add an endpoint' }).click();
    await address.waitFor();
    await page.mouse.click(5, 5);
    await address.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Add an endpoint' }).click();
    await address.fill(`${receiver.url}/slow`);
    // Only an empty form is closed by a click beside it.
    await page.mouse.click(5, 5);
    expect(await address.inputValue()).toBe(`${receiver.url}/slow`);
    await address.focus();
    const answer = await holdCalls(page, /CreateEndpoint/);
    await Promise.all([page.waitForRequest(/CreateEndpoint/), page.keyboard.press('Enter')]);
    await page.keyboard.press('Escape');
    // Back is refused, so there is no page to wait for.
    await page.evaluate(() => history.back());
    answer();
    await page.getByText(/^whsec_/).waitFor();
    await page.evaluate(() => history.back());
    await page.waitForTimeout(500);
    expect(await page.getByText(/^whsec_/).isVisible()).toBe(true);
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await page.getByRole('heading', { name: `${receiver.url}/slow` }).waitFor();
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.getByRole('alertdialog').getByRole('textbox').fill(`${receiver.url}/slow`);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/webhooks');
    await page.close();
  });

  test('are not added twice, nor get another secret, unnoticed when the answer is lost', async () => {
    const page = await pages.open('/webhooks');
    await page.route(
      /CreateEndpoint|RotateSecret/,
      async (route) => {
        await route.fetch();
        await route.abort();
      },
      { times: 2 },
    );
    await page.getByRole('button', { name: 'Add an endpoint' }).click();
    // The list of a page that is out of sight is not read again from time to time, only after the failure.
    await page.evaluate(() => Object.defineProperty(document, 'visibilityState', { value: 'hidden' }));
    const address = page.getByRole('textbox', { name: 'Address' });
    await address.fill(`${receiver.url}/lost`);
    await address.press('Enter');
    await page.getByText('look whether the list has the endpoint now').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: `${receiver.url}/lost` }).click();
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: 'Rotate the secret' }).click();
    const rotate = page.getByRole('alertdialog').getByRole('button', { name: 'Rotate the secret' });
    await rotate.click();
    await page.getByText('the secret may have been replaced').waitFor();
    await rotate.click();
    await page.getByText(/^whsec_/).waitFor();
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await page.getByRole('button', { name: 'More' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.getByRole('alertdialog').getByRole('textbox').fill(`${receiver.url}/lost`);
    await page.keyboard.press('Enter');
    await expect.poll(() => page.getByRole('link', { name: `${receiver.url}/lost` }).count()).toBe(0);
    await page.close();
  });

  test('are shown to a viewer, in German, without buttons to change them', async () => {
    const page = await pages.open('/webhooks', { role: Role.VIEWER, context: { locale: 'de-DE' } });
    await page.getByRole('link', { name: `${receiver.url}/hooks` }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Zustellungen' }).waitFor();
    await page.getByRole('row').getByText('Zugestellt').first().waitFor();
    // The type of an event is broken at its punctuation only.
    await page.setViewportSize({ width: 700, height: 900 });
    const { height = 0 } = (await page.getByRole('button', { name: 'webhook.test' }).first().boundingBox()) ?? {};
    expect(height).toBeLessThanOrEqual(40);
    expect(await page.getByRole('button', { name: /senden|Mehr/ }).count()).toBe(0);
    await expectAccessible(page);
    await page.close();
  });

  test('are sent nothing while they are disabled', async () => {
    const webhooks = pages.client(WebhooksService);
    const { endpoints } = await webhooks.listEndpoints({});
    const id = endpoints.find(({ url }) => url === `${receiver.url}/hooks`)?.id ?? '';
    await webhooks.updateEndpoint({ id, enabled: false, updateMask: { paths: ['enabled'] } });
    const page = await pages.open(`/webhooks/${id}`);
    await page.getByText('Disabled', { exact: true }).waitFor();
    for (const name of ['Send a test event', 'Resend all failed', 'Resend: webhook.test']) {
      expect(await page.getByRole('button', { name }).first().isDisabled(), name).toBe(true);
    }
    await page.close();
  });

  test('get another secret, which stays until it was stored whatever the role is by then, and can be deleted', async () => {
    const page = await pages.open('/webhooks', { role: Role.ADMIN });
    const accounts = pages.client(AccountsService);
    const { members } = await accounts.listMembers({});
    const id = members.find(({ role }) => role === Role.ADMIN)?.id ?? '';
    const url = `${receiver.url}/deleted`;
    await page.getByRole('button', { name: 'Add an endpoint' }).click();
    await page.getByRole('textbox', { name: 'Address' }).fill(url);
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await page.getByRole('heading', { name: url }).waitFor();
    for (const action of ['Rotate the secret', 'Delete']) {
      await page.getByRole('button', { name: 'More' }).focus();
      await page.keyboard.press('Enter');
      await page.getByRole('menuitem', { name: action }).focus();
      await page.keyboard.press('Enter');
      await page.getByRole('alertdialog').waitFor();
      if (action === 'Delete') await page.keyboard.type(url);
      await page.getByRole('alertdialog').getByRole('button', { name: action }).focus();
      await page.keyboard.press('Enter');
      if (action === 'Delete') continue;
      await page.getByText(/^whsec_/).waitFor();
      await accounts.updateMember({ id, role: Role.VIEWER });
      await comeBack(page);
      await page.getByText('Viewer').first().waitFor();
      await page.getByText(/^whsec_/).waitFor();
      await page.getByRole('button', { name: 'I have stored it' }).focus();
      await page.keyboard.press('Enter');
      await accounts.updateMember({ id, role: Role.ADMIN });
      await comeBack(page);
    }
    await page.waitForURL('**/webhooks');
    await expect.poll(() => page.getByRole('link', { name: url }).count()).toBe(0);
    await page.close();
  });
});
