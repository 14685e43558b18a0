import type { DescService } from '@bufbuild/protobuf';
import type { Client } from '@connectrpc/connect';
import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, expect, onTestFinished } from 'vitest';
import { nameOf, ROLE_BY_NAME } from '../../common/contract/names.ts';
import { AccountsService, Plan, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { internal } from '../../test/contract/internal.ts';
import { launchBrowser } from '../../test/harness/browser.ts';
import { type Signpost, type SignpostOptions, startSignpost } from '../../test/harness/processes.ts';
import { type Dashboard, startDashboard } from '../server/dashboard.fixture.ts';

/** An account's dashboard in a browser, with a core, a worker and a gateway behind it. */
export interface DashboardPages {
  readonly signpost: Signpost;
  readonly dashboard: Dashboard;
  /** `acct_…` */
  readonly account: string;
  readonly apiKey: string;
  /** Calls the core for the account. */
  client<S extends DescService>(service: S): Client<S>;
  /** A page signed in as a member with this role; an owner unless given. Its errors fail the test at its end. */
  open(path: string, options?: { role?: Role; context?: BrowserContextOptions }): Promise<Page>;
}

/** Comes back to a page after a minute in another tab: it reads again what it shows. */
export async function comeBack(page: Page): Promise<void> {
  await page.evaluate(() => {
    const now = Date.now;
    Date.now = () => now() + 60_000;
    window.dispatchEvent(new Event('visibilitychange'));
  });
}

/** Holds back the calls of a page whose address matches, until the returned function is called. */
export async function holdCalls(page: Page, address: RegExp): Promise<() => void> {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  await page.route(address, async (route) => {
    await released;
    await route.continue();
  });
  return release;
}

/** The response of a streaming call: its messages, and its end. */
export function streamOf(...messages: readonly object[]): { contentType: string; body: Buffer } {
  const envelope = (flags: number, message: object) => {
    const json = Buffer.from(JSON.stringify(message));
    const head = Buffer.from([flags, 0, 0, 0, 0]);
    head.writeUInt32BE(json.length, 1);
    return Buffer.concat([head, json]);
  };
  const body = Buffer.concat([...messages.map((message) => envelope(0, message)), envelope(2, {})]);
  return { contentType: 'application/connect+json', body };
}

/** Starts everything that pages need. Call it in `beforeAll`; all of it stops after the file. */
export async function startPages(options: SignpostOptions & { plan?: Plan } = {}): Promise<DashboardPages> {
  const signpost = await startSignpost(options);
  const dashboard = await startDashboard(signpost);
  const created = await signpost.createAccount({ name: 'Harbour Kitchens', plan: options.plan ?? Plan.BUSINESS });
  const { accountId: account, apiKey } = created;
  const browser = await launchBrowser();
  const failures: string[] = [];
  afterAll(async () => {
    await browser.close();
    expect(failures, 'errors in the browser').toEqual([]);
  });
  const accounts = internal(signpost, AccountsService, account);
  const emails = new Map<Role, string>();
  const contexts = new Map<string, Promise<BrowserContext>>();

  const emailOf = async (role: Role) => {
    const known = emails.get(role);
    if (known !== undefined) return known;
    const email = `${nameOf(ROLE_BY_NAME, role)}@harbour.example`;
    await accounts.addMember({ email, role });
    emails.set(role, email);
    return email;
  };
  const signedIn = async (role: Role, context: BrowserContextOptions) => {
    const { token } = await accounts.createSignInLink({ email: await emailOf(role) });
    const created = await browser.newContext({ locale: 'en-GB', timezoneId: 'Europe/Berlin', ...context });
    created.on('weberror', (error) => failures.push(String(error.error())));
    created.on('console', (message) => {
      if (/Content Security Policy|Refused to/.test(message.text())) failures.push(message.text());
    });
    const page = await created.newPage();
    await page.goto(`${dashboard.url}/sign-in/link#${token}`);
    await page.getByRole('button').click();
    await page.waitForURL(`${dashboard.url}/`);
    await page.close();
    return created;
  };
  return {
    signpost,
    dashboard,
    account,
    apiKey,
    client: (service) => internal(signpost, service, account),
    async open(path, { role = Role.OWNER, context = {} } = {}) {
      const key = JSON.stringify([role, context]);
      const opened = contexts.get(key) ?? signedIn(role, context);
      contexts.set(key, opened);
      const page = await (await opened).newPage();
      // Else it keeps a process of the browser until the end of the file.
      onTestFinished(async () => {
        if (page.isClosed()) return;
        await page.unrouteAll({ behavior: 'ignoreErrors' });
        await page.close();
      });
      await page.goto(`${dashboard.url}${path}`);
      return page;
    },
  };
}
