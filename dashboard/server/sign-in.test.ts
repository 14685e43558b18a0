import { randomUUID } from 'node:crypto';
import { generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { AccountsService, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { internal } from '../../test/contract/internal.ts';
import { type Signpost, startSignpost } from '../../test/harness/processes.ts';
import { Browser } from './browser.fixture.ts';
import { type Dashboard, startDashboard } from './dashboard.fixture.ts';
import { type Claims, passProvider, startProvider, type TestProvider } from './provider.fixture.ts';

/** Sign-in at a real OpenID provider, over HTTP. */

let signpost: Signpost;
let provider: TestProvider;
let dashboard: Dashboard;
let account: string;

beforeAll(async () => {
  signpost = await startSignpost({ gateways: 0, roles: ['rpc'] });
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
async function begin(browser: Browser, query = ''): Promise<URL> {
  const response = await browser.request(`${dashboard.url}/sign-in${query}`);
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
  expect([response.status, response.headers.get('location')]).toEqual([303, `${dashboard.url}/`]);
  expect(await (await session(browser)).json()).toEqual({
    email: 'Anna@Example.com',
    name: 'Anna Arendt',
    account: { id: account, name: 'Bakery' },
    member: { id: expect.stringMatching(/^mbr_/), role: 'owner' },
    accounts: [{ id: account, name: 'Bakery', role: 'owner' }],
    publicUrl: signpost.url,
  });
});

test('a sign-in leads back to the page that it was for, and nowhere else', async () => {
  const ledTo = async (to: string) => {
    const browser = new Browser();
    const authorization = await begin(browser, `?to=${encodeURIComponent(to)}`);
    const response = await browser.request(await passProvider(browser, authorization.href, 'anna'));
    return response.headers.get('location');
  };
  expect(await ledTo('/codes?q=menu')).toBe(`${dashboard.url}/codes?q=menu`);
  expect(await ledTo('/.//other.example')).toBe(`${dashboard.url}//other.example`);
  const elsewhere = ['//other.example', '/\\other.example', 'https://other.example/', 'javascript:alert(1)'];
  for (const to of [...elsewhere, `/${'a'.repeat(1_000)}`]) expect(await ledTo(to), to).toBe(`${dashboard.url}/`);
});

test('a sign-in opens the account that it was for, if the person is a member of it', async () => {
  provider.people.set('emma', { email: 'emma@example.com', email_verified: true });
  await addMember(account, 'emma@example.com', Role.VIEWER);
  const newest = (await signpost.createAccount({ name: 'Newest' })).accountId;
  await addMember(newest, 'emma@example.com', Role.VIEWER);
  const opened = async (query: string) => {
    const browser = new Browser();
    await browser.request(await passProvider(browser, (await begin(browser, query)).href, 'emma'));
    return ((await (await session(browser)).json()) as { account: { id: string } }).account.id;
  };
  expect(await opened(`?to=/codes&account=${account}`)).toBe(account);
  const foreign = (await signpost.createAccount({ name: 'Foreign' })).accountId;
  for (const query of ['', `?account=${newest}`, `?account=${foreign}`, `?account=${account}&account=${account}`]) {
    expect(await opened(query), query).toBe(newest);
  }
});

test('sign-ins that a browser begins at the same time all succeed', async () => {
  const browser = new Browser();
  const finish = async (authorization: URL) => {
    const response = await browser.request(await passProvider(browser, authorization.href, 'anna'));
    return response.headers.get('location');
  };
  const [first, second] = [await begin(browser, '?to=/codes'), await begin(browser, '?to=/team')];
  expect(await finish(second)).toBe(`${dashboard.url}/team`);
  expect(await finish(first)).toBe(`${dashboard.url}/codes`);
  const pending = () => browser.cookieNames(dashboard.url).filter((name) => name.startsWith('signpost-sign-in'));
  expect(pending()).toEqual([]);
  const longest = `?to=${encodeURIComponent(`/${'a'.repeat(1_000 - dashboard.url.length - 1)}`)}&account=acct_${'a'.repeat(64)}`;
  const many = [];
  for (let begun = 0; begun < 5; begun++) many.push(await begin(browser, longest));
  expect(pending()).toHaveLength(3);
  const header = pending().map((name) => `${name}=${browser.cookie(dashboard.url, name)}`);
  expect(header.join('; ').length).toBeLessThan(6_500);
  expect(await finish(many[2] as URL)).toMatch(/a{900}$/);
});

test('cookies with names that no sign-in has change nothing', async () => {
  for (const odd of ['a b', '\u00e9', 'a']) {
    const cookie = [odd, 'c', 'd'].map((suffix) => `signpost-sign-in-${suffix}=1`).join('; ');
    const response = await fetch(`${dashboard.url}/sign-in`, { redirect: 'manual', headers: { cookie } });
    const set = response.headers.getSetCookie().map((each) => each.split('=')[0]);
    expect([odd, response.status, set]).toEqual([odd, 303, [expect.stringMatching(/^signpost-sign-in-[\w-]{16}$/)]]);
  }
});

test('a sign-in that failed can be begun again for the same page and account', async () => {
  provider.people.set('stranger', { email: 'stranger@example.com', email_verified: true });
  const query = `?to=${encodeURIComponent('/codes?q="menu"&state=live')}&account=acct_1`;
  const refused = new URLSearchParams({ error: 'access_denied' });
  for (const how of ['no member', 'refused'] as const) {
    const browser = new Browser();
    const authorization = await begin(browser, query);
    refused.set('state', authorization.searchParams.get('state') ?? '');
    refused.set('iss', provider.issuer);
    const callback =
      how === 'refused'
        ? `${dashboard.url}/sign-in/callback?${refused}`
        : await passProvider(browser, authorization.href, 'stranger');
    const page = await (await browser.request(callback)).text();
    const [, link = ''] = /<a href="([^"]*)"/.exec(page) ?? [];
    const again = new URL(link.replaceAll('&amp;', '&'), dashboard.url);
    expect(again.pathname).toBe('/sign-in');
    expect(Object.fromEntries(again.searchParams)).toEqual({
      to: `${dashboard.url}/codes?q=%22menu%22&state=live`,
      account: 'acct_1',
    });
    const agains = new Browser();
    const next = await begin(agains, again.search);
    const response = await agains.request(await passProvider(agains, next.href, 'anna'));
    expect(response.headers.get('location')).toBe(`${dashboard.url}/codes?q=%22menu%22&state=live`);
  }
});

test('UserInfo says whether an address is verified if the ID token does not, and about its own address only', async () => {
  const email = 'fred@example.com';
  await addMember(account, email, Role.VIEWER);
  const status = async (inIdToken: Claims, inUserInfo: Claims) => {
    provider.people.set('fred', { ...inUserInfo, inIdToken });
    return (await signIn(new Browser(), 'fred')).status;
  };
  expect(await status({ email }, { email, email_verified: true })).toBe(303);
  expect(await status({ email, email_verified: true }, {})).toBe(303);
  expect(await status({ email }, { email, email_verified: false })).toBe(403);
  expect(await status({ email }, { email: 'other@example.com', email_verified: true })).toBe(403);
  expect(await status({ email, email_verified: false }, { email, email_verified: true })).toBe(403);
});

test('an address that the provider has not verified signs nobody in', async () => {
  await addMember(account, 'ben@example.com', Role.OWNER);
  for (const email_verified of [false, undefined, 'true'] as const) {
    provider.people.set('ben', { email: 'ben@example.com', ...(email_verified !== undefined && { email_verified }) });
    const browser = new Browser();
    const response = await signIn(browser, 'ben');
    expect([response.status, await response.text()]).toEqual([403, expect.stringContaining('is not verified')]);
    expect((await session(browser)).status).toBe(401);
  }
});

test('a person who is no member of any account is not signed in', async () => {
  provider.people.set('stranger', { email: 'stranger@example.com', email_verified: true });
  const browser = new Browser();
  const response = await signIn(browser, 'stranger');
  expect([response.status, await response.text()]).toEqual([403, expect.stringContaining('belongs to no account')]);
  expect((await session(browser)).status).toBe(401);
});

test('a person whose address only folds to that of a member is not signed in', async () => {
  await addMember(account, 'kim@example.com', Role.OWNER);
  provider.people.set('impostor', { email: '\u212aim@example.com', email_verified: true });
  const browser = new Browser();
  expect((await signIn(browser, 'impostor')).status).toBe(403);
  expect((await session(browser)).status).toBe(401);
});

test('a removed member is signed out, or stays signed in to other accounts', async () => {
  provider.people.set('carl', { email: 'carl@example.com', email_verified: true });
  const second = (await signpost.createAccount({ name: 'Second' })).accountId;
  const members = new Map<string, string>();
  for (const id of [account, second]) members.set(id, await addMember(id, 'carl@example.com', Role.VIEWER));
  await addMember(second, 'owner@example.com', Role.OWNER);
  const browser = new Browser();
  await signIn(browser, 'carl');
  expect(await (await session(browser)).json()).toMatchObject({ account: { id: second } });
  for (const [id, status] of [
    [second, 200],
    [account, 401],
  ] as const) {
    await internal(signpost, AccountsService, id).removeMember({ id: members.get(id) ?? '' });
    expect((await session(browser)).status).toBe(status);
  }
  expect(browser.cookie(dashboard.url, 'signpost-session')).toBeUndefined();
});

describe('a callback is rejected', () => {
  /** Calls back, with the address changed, in this browser or another one. */
  async function callBack(
    { authorize = (_: URL) => {}, callback = (_: URL) => {} },
    { by }: { by?: Browser } = {},
  ): Promise<Response> {
    const browser = new Browser();
    const authorization = await begin(browser);
    authorize(authorization);
    const url = new URL(await passProvider(browser, authorization.href, 'anna'));
    callback(url);
    const at = by ?? browser;
    const response = await at.request(url.href);
    expect((await session(at)).status).toBe(401);
    return response;
  }
  const set = (name: string, value: string) => (url: URL) => url.searchParams.set(name, value);

  test.each([
    ['with another state', { callback: set('state', 'a'.repeat(43)) }],
    ['without a state', { callback: (url: URL) => url.searchParams.delete('state') }],
    ['whose ID token has another nonce', { authorize: set('nonce', 'a'.repeat(43)) }],
    ['whose code was asked for with another PKCE challenge', { authorize: set('code_challenge', 'a'.repeat(43)) }],
    ['with a code that was not issued', { callback: set('code', 'a'.repeat(43)) }],
    ['of another issuer', { callback: set('iss', 'https://provider.example') }],
    ['with an error', { callback: set('error', 'access_denied') }],
  ])('%s', async (_, change) => {
    const response = await callBack(change);
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining('Sign-in failed')]);
  });

  test('in another browser, and in one that has begun another sign-in', async () => {
    expect((await callBack({}, { by: new Browser() })).status).toBe(400);
    const other = new Browser();
    await begin(other);
    expect((await callBack({}, { by: other })).status).toBe(400);
  });

  test('the second time', async () => {
    const browser = new Browser();
    const callback = await passProvider(browser, (await begin(browser)).href, 'anna');
    const [name = ''] = browser.cookieNames(dashboard.url).filter((name) => name.startsWith('signpost-sign-in'));
    const checks = browser.cookie(dashboard.url, name) ?? '';
    expect((await browser.request(callback)).status).toBe(303);
    expect((await new Browser().request(callback)).status).toBe(400);
    const copy = new Browser();
    copy.setCookie(dashboard.url, name, checks);
    expect((await copy.request(callback)).status).toBe(400);
  });
});

describe('the provider ends sessions', () => {
  const claims = (changes: Record<string, unknown> = {}): JWTPayload => ({
    iss: provider.issuer,
    aud: provider.clientId,
    iat: Math.floor(Date.now() / 1_000),
    exp: Math.floor(Date.now() / 1_000) + 120,
    jti: randomUUID(),
    sub: 'anna',
    events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
    ...changes,
  });
  const send = (token: string) =>
    fetch(`${dashboard.url}/back-channel-logout`, {
      method: 'POST',
      body: new URLSearchParams({ logout_token: token }),
    });

  test('when the person signs out there', async () => {
    const [here, elsewhere] = [new Browser(), new Browser()];
    for (const browser of [here, elsewhere]) expect((await signIn(browser, 'anna')).status).toBe(303);
    const page = await here.open(`${provider.issuer}/session/end`);
    await here.submit(page, { logout: 'yes' });
    await expect.poll(async () => (await session(here)).status).toBe(401);
    expect((await session(elsewhere)).status).toBe(200);
  });

  test('at all instances, by telling one', async () => {
    const other = await startDashboard(signpost, { env: { SECRET_KEY: dashboard.secretKey.toString('base64') } });
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    const browser = new Browser();
    await signIn(browser, 'anna');
    const copy = new Browser();
    copy.setCookie(other.url, 'signpost-session', browser.cookie(dashboard.url, 'signpost-session') ?? '');
    const statusAtOther = async () => (await copy.request(`${other.url}/session`)).status;
    expect(await statusAtOther()).toBe(200);
    expect((await send(await provider.sign(claims()))).status).toBe(200);
    await expect.poll(statusAtOther).toBe(401);
  });

  test('of a whole subject, but not those that it starts later', async () => {
    const [first, second, other] = [new Browser(), new Browser(), new Browser()];
    // Times have whole seconds.
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    await addMember(account, 'dora@example.com', Role.VIEWER);
    provider.people.set('dora', { email: 'dora@example.com', email_verified: true });
    for (const browser of [first, second]) await signIn(browser, 'anna');
    await signIn(other, 'dora');
    const response = await send(await provider.sign(claims()));
    expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store']);
    const statuses = await Promise.all([first, second, other].map(async (each) => (await session(each)).status));
    expect(statuses).toEqual([401, 401, 200]);
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    await signIn(first, 'anna');
    expect((await session(first)).status).toBe(200);
  });

  test('by valid logout tokens only', async () => {
    const browser = new Browser();
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    await signIn(browser, 'anna');
    const { privateKey } = await generateKeyPair('RS256');
    const now = Math.floor(Date.now() / 1_000);
    const tokens: Record<string, string> = {
      'no token': '',
      'of another key': await new SignJWT(claims()).setProtectedHeader({ alg: 'RS256', kid: 'first' }).sign(privateKey),
      'signed with the client secret': await new SignJWT(claims())
        .setProtectedHeader({ alg: 'HS256' })
        .sign(Buffer.from(provider.clientSecret)),
      'of another type': await provider.sign(claims(), 'at+jwt'),
      'with a nonce': await provider.sign(claims({ nonce: 'a' })),
      'without an event': await provider.sign(claims({ events: {} })),
      'without events': await provider.sign(claims({ events: undefined })),
      'without an id': await provider.sign(claims({ jti: undefined })),
      'of another issuer': await provider.sign(claims({ iss: 'https://provider.example' })),
      'for another client': await provider.sign(claims({ aud: 'other' })),
      'of an hour ago': await provider.sign(claims({ iat: now - 3_600, exp: now + 60 })),
      expired: await provider.sign(claims({ exp: now - 60 })),
      'that names nobody': await provider.sign(claims({ sub: undefined })),
    };
    for (const [what, token] of Object.entries(tokens)) {
      expect([what, (await send(token)).status]).toEqual([what, 400]);
    }
    expect((await session(browser)).status).toBe(200);
  });
});

test('sign-in says so while the provider is unavailable, and works again afterwards', async () => {
  const port = await freePort();
  const issuer = `http://${LOOPBACK}:${await freePort()}`;
  const env = { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: 'dashboard', OIDC_CLIENT_SECRET: 'secret' };
  const waiting = await startDashboard(signpost, { port, env });
  const unavailable = await new Browser().request(`${waiting.url}/sign-in`);
  expect([unavailable.status, await unavailable.text()]).toEqual([503, expect.stringContaining('does not respond')]);
  await startProvider(waiting.url, Number(new URL(issuer).port));
  expect((await new Browser().request(`${waiting.url}/sign-in`)).status).toBe(303);
});

test('neither addresses nor secrets are in the log', async () => {
  await signIn(new Browser(), 'anna');
  const log = await dashboard.log();
  expect(log).toContain('a member has signed in');
  expect(log).not.toMatch(/@|example\.com|Arendt/i);
  expect(log).not.toContain(provider.clientSecret);
  expect(log).not.toContain(signpost.serviceToken);
});
