import { createClient } from '@connectrpc/connect';
import { EncryptJWT, generateKeyPair, SignJWT } from 'jose';
import { hkdfSync } from 'node:crypto';
import { beforeAll, expect, test } from 'vitest';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { AccountsService, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { internal } from '../../test/contract/internal.ts';
import { type Signpost, startSignpost } from '../../test/harness/processes.ts';
import { Browser } from './browser.fixture.ts';
import { type Dashboard, startDashboard } from './dashboard.fixture.ts';
import { passProvider, startProvider, type TestProvider } from './provider.fixture.ts';

/** Sign-in at a real OpenID provider, over HTTP. */

let signpost: Signpost;
let provider: TestProvider;
let dashboard: Dashboard;
let account: string;

void createClient;

beforeAll(async () => {
  signpost = await startSignpost({ roles: ['rpc'] });
  const port = await freePort();
  provider = await startProvider(`http://${LOOPBACK}:${port}`);
  dashboard = await startDashboard(signpost, {
    port,
    env: {
      OIDC_ISSUER: provider.issuer,
      OIDC_CLIENT_ID: provider.clientId,
      OIDC_CLIENT_SECRET: provider.clientSecret,
    },
  });
  account = (await signpost.createAccount({ name: 'Bakery' })).accountId;
  await addMember(account, 'anna@example.com', Role.OWNER);
  provider.people.set('anna', { email: 'Anna@Example.com', email_verified: true, name: 'Anna Arendt' });
});

async function addMember(accountId: string, email: string, role: Role): Promise<string> {
  const { member } = await internal(signpost, AccountsService, accountId).addMember({ email, role });
  return member?.id ?? '';
}

/** Starts a sign-in, and returns the provider's address. */
async function begin(browser: Browser): Promise<URL> {
  const response = await browser.request(`${dashboard.url}/sign-in`);
  expect(response.status).toBe(303);
  return new URL(response.headers.get('location') ?? '');
}

async function signIn(browser: Browser, person: string): Promise<Response> {
  const callback = await passProvider(browser, (await begin(browser)).href, person);
  return browser.request(callback);
}

const session = (browser: Browser) => browser.request(`${dashboard.url}/session`);

test('a member with a verified address signs in', async () => {
  const browser = new Browser();
  const authorization = await begin(browser);
  expect(Object.fromEntries(authorization.searchParams)).toMatchObject({
    response_type: 'code',
    scope: 'openid email profile',
    code_challenge_method: 'S256',
    state: expect.stringMatching(/^[\w-]{43}$/),
    nonce: expect.stringMatching(/^[\w-]{43}$/),
  });
  const response = await browser.request(await passProvider(browser, authorization.href, 'anna'));
  expect([response.status, response.headers.get('location')]).toEqual([303, '/']);
  expect(await (await session(browser)).json()).toEqual({
    email: 'Anna@Example.com',
    name: 'Anna Arendt',
    account: { id: account, name: 'Bakery', plan: 'business' },
    member: { id: expect.stringMatching(/^mbr_/), role: 'owner' },
    accounts: [{ id: account, name: 'Bakery', role: 'owner' }],
    publicUrl: signpost.url,
  });
});
