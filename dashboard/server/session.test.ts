import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AccountsService, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { forgetEndedSessions } from '../../src/accounts/ended-sessions.ts';
import { internal } from '../../test/contract/internal.ts';
import { newAuthority } from '../../test/harness/certificates.ts';
import { type Signpost, startSignpost } from '../../test/harness/processes.ts';
import { Browser } from './browser.fixture.ts';
import { cookieCipherFor } from './cookie-cipher.ts';
import { type Dashboard, redeem, signInWithLink, startDashboard } from './dashboard.fixture.ts';
import { SESSION_S } from './session.ts';

/** Sessions that links start: cookies, origins, switching accounts, signing out. */

const EMAIL = 'anna@example.com';

let signpost: Signpost;
let dashboard: Dashboard;
let pool: pg.Pool;
let account: string;
let member: string;

beforeAll(async () => {
  signpost = await startSignpost({ gateways: 0, roles: ['rpc'] });
  dashboard = await startDashboard(signpost);
  pool = new pg.Pool({ connectionString: signpost.databaseUrl });
  account = (await signpost.createAccount({ name: 'Bakery' })).accountId;
  member = (await accounts().addMember({ email: EMAIL, role: Role.OWNER })).member?.id ?? '';
});
afterAll(() => pool.end());

const accounts = () => internal(signpost, AccountsService, account);
const newToken = async () => (await accounts().createSignInLink({ email: EMAIL })).token;
const signIn = async () => signInWithLink(dashboard, await newToken());
const session = (browser: Browser) => browser.request(`${dashboard.url}/session`);
const statusOf = async (browser: Browser) => (await session(browser)).status;

/** A browser with this cookie. */
function withCookie(value: string): Browser {
  const browser = new Browser();
  browser.setCookie(dashboard.url, 'signpost-session', value);
  return browser;
}

describe('a sign-in link', () => {
  test('shows a form that redeems it, so that previews do not', async () => {
    const page = await new Browser().open(`${dashboard.url}/sign-in/link`);
    expect(page.status).toBe(200);
    expect(page.html).toContain('<form method="post" action="/sign-in/link?redeem">');
    expect(page.html).not.toMatch(/<script>|<style| style=| on\w+=/);
    for (const [, file] of page.html.matchAll(/(?:src|href)="([^"]+)"/g)) {
      expect((await fetch(`${dashboard.url}${file}`)).status).toBe(200);
    }
    const german = await new Browser().open(`${dashboard.url}/sign-in/link`, {
      headers: { 'accept-language': 'de-AT' },
    });
    expect(german.html).toMatch(/<html lang="de">.*Anmelden/s);
  });

  test('signs in once, to its account', async () => {
    const token = await newToken();
    const browser = await signInWithLink(dashboard, token);
    expect(await (await session(browser)).json()).toEqual({
      email: EMAIL,
      name: null,
      account: { id: account, name: 'Bakery' },
      member: { id: member, role: 'owner' },
      accounts: [{ id: account, name: 'Bakery', role: 'owner' }],
      publicUrl: signpost.url,
    });
    const again = await redeem(new Browser(), dashboard.url, token);
    expect([again.status, await again.text()]).toEqual([400, expect.stringContaining('invalid, expired or used')]);
  });

  test.each([
    ['application/json', '{"token":"x"}'],
    ['application/json', 'null'],
    ['text/plain', 'token=x'],
  ])('is invalid if what is sent is no form: %s %s', async (type, body) => {
    const response = await new Browser().request(`${dashboard.url}/sign-in/link`, {
      method: 'POST',
      body,
      headers: { 'content-type': type },
    });
    expect([response.status, await response.text()]).toEqual([
      400,
      expect.stringContaining('invalid, expired or used'),
    ]);
  });

  test('is invalid if nothing is sent', async () => {
    const response = await new Browser().request(`${dashboard.url}/sign-in/link`, { method: 'POST' });
    expect(response.status).toBe(400);
  });

  test('signs one of concurrent browsers in', async () => {
    const token = await newToken();
    const browsers = Array.from({ length: 5 }, () => new Browser());
    const answers = await Promise.all(browsers.map((browser) => redeem(browser, dashboard.url, token)));
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 400, 400, 400, 400]);
    expect((await Promise.all(browsers.map(statusOf))).sort()).toEqual([200, 401, 401, 401, 401]);
  });

  test('expires', async () => {
    const token = await newToken();
    await pool.query(`update sign_in_links set expires_at = now() - interval '1 second'`);
    expect((await redeem(new Browser(), dashboard.url, token)).status).toBe(400);
  });

  test.each(['', 'a', 'a'.repeat(5_000), '\u0000'])('that is %j is invalid', async (token) => {
    expect((await redeem(new Browser(), dashboard.url, token)).status).toBe(400);
  });

  test('proves no more than its own membership', async () => {
    const other = (await signpost.createAccount({ name: 'Other' })).accountId;
    await internal(signpost, AccountsService, other).addMember({ email: EMAIL, role: Role.OWNER });
    const browser = await signIn();
    expect(await (await session(browser)).json()).toMatchObject({ accounts: [{ id: account }] });
    expect((await switchTo(browser, other)).status).toBe(403);
  });
});

function switchTo(browser: Browser, id: unknown): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return browser.request(`${dashboard.url}/session/account`, { method: 'POST', headers, body: JSON.stringify({ id }) });
}

test('a session opens any account of the person, and no other one', async () => {
  const second = (await signpost.createAccount({ name: 'Second' })).accountId;
  const added = await internal(signpost, AccountsService, second).addMember({ email: EMAIL, role: Role.VIEWER });
  // As it is after sign-in at a provider.
  const content = { id: 'x', startedAt: now(), expiresAt: now() + 60, email: EMAIL, name: 'Anna', subject: 'anna' };
  const browser = withCookie(await encrypt({ ...content, account, member }));
  const opened = await switchTo(browser, second);
  expect([opened.status, await opened.json()]).toEqual([
    200,
    expect.objectContaining({
      account: { id: second, name: 'Second' },
      member: { id: added.member?.id, role: 'viewer' },
      accounts: expect.arrayContaining([{ id: account, name: 'Bakery', role: 'owner' }]),
    }),
  ]);
  expect(await (await session(browser)).json()).toMatchObject({ account: { id: second } });
  const foreign = (await signpost.createAccount()).accountId;
  expect((await switchTo(browser, foreign)).status).toBe(403);
  for (const id of [undefined, 7, '', 'acct_x']) expect((await switchTo(browser, id)).status).toBeOneOf([400, 403]);
  expect(await (await session(browser)).json()).toMatchObject({ account: { id: second } });
});

const now = () => Math.floor(Date.now() / 1_000);
const encrypt = (content: Record<string, unknown>, { expiresAt = now() + 60, key = dashboard.secretKey } = {}) =>
  cookieCipherFor('session', key).encrypt(content, expiresAt);

describe('the session cookie', () => {
  test('is for this site only, unreadable by scripts, and expires with the session', async () => {
    const response = await redeem(new Browser(), dashboard.url, await newToken());
    const [cookie = ''] = response.headers.getSetCookie();
    expect(response.headers.getSetCookie()).toHaveLength(1);
    const [content = '', ...attributes] = cookie.split('; ');
    expect(content).toMatch(/^signpost-session=[\w.-]+$/);
    expect(content.length).toBeLessThan(4_096);
    expect(attributes.filter((each) => !each.startsWith('Expires')).sort()).toEqual([
      'HttpOnly',
      'Path=/',
      'SameSite=Lax',
    ]);
    const expires = Date.parse(/Expires=(.+?)(?:;|$)/.exec(cookie)?.[1] ?? '') / 1_000;
    expect(Math.abs(expires - now() - SESSION_S)).toBeLessThan(60);
    expect(Buffer.from(content, 'base64').toString('latin1')).not.toContain(EMAIL);
  });

  test('is worthless when it is changed, of another key or purpose, or expired', async () => {
    const valid = (await signIn()).cookie(dashboard.url, 'signpost-session') ?? '';
    expect(await statusOf(withCookie(valid))).toBe(200);
    const content = { id: 'x', startedAt: now(), expiresAt: now() + 60, email: EMAIL, name: null, account, member };
    const worthless = {
      changed: `${valid.slice(0, -3)}${valid.at(-3) === 'A' ? 'B' : 'A'}${valid.slice(-2)}`,
      cut: valid.slice(0, -10),
      empty: 'x',
      'of another key': await encrypt(content, { key: randomBytes(32) }),
      'of another purpose': await cookieCipherFor('sign-in', dashboard.secretKey).encrypt(content, now() + 60),
      expired: await encrypt(content, { expiresAt: now() - 1 }),
      incomplete: await encrypt({ ...content, member: undefined }),
    };
    for (const [what, value] of Object.entries(worthless)) {
      expect([what, await statusOf(withCookie(value))]).toEqual([what, 401]);
    }
    expect(await statusOf(withCookie(await encrypt(content)))).toBe(200);
  });

  test('is worthless after signing out, also a copy of it', async () => {
    const browser = await signIn();
    const copy = withCookie(browser.cookie(dashboard.url, 'signpost-session') ?? '');
    const other = await signIn();
    const response = await browser.request(`${dashboard.url}/session`, { method: 'DELETE' });
    expect(response.status).toBe(204);
    expect(browser.cookie(dashboard.url, 'signpost-session')).toBeUndefined();
    expect(await Promise.all([browser, copy, other].map(statusOf))).toEqual([401, 401, 200]);
    expect((await browser.request(`${dashboard.url}/session`, { method: 'DELETE' })).status).toBe(204);
  });

  test('is not written again by a question about it, whose answer may follow that about another account', async () => {
    const answer = await session(await signIn());
    expect([answer.status, answer.headers.getSetCookie()]).toEqual([200, []]);
  });

  test('outlives a restart of the dashboard', async () => {
    const browser = await signIn();
    await dashboard.restart();
    expect(await statusOf(browser)).toBe(200);
  });
});

test('without a session or a provider there is no way to sign in but a link', async () => {
  const response = await session(new Browser());
  expect([response.status, await response.json()]).toEqual([401, { signIn: [] }]);
  const page = await new Browser().open(`${dashboard.url}/sign-in`);
  expect([page.status, page.html]).toEqual([404, expect.stringContaining('ask for a sign-in link')]);
});

test.each([
  ['a foreign origin', { origin: 'https://evil.example' }],
  ['the same host on another port', { origin: 'http://127.0.0.1:1' }],
  ['an opaque origin', { origin: 'null' }],
  ['no origin', undefined],
])('requests that change something from %s are rejected', async (_, headers) => {
  const cookie = `signpost-session=${(await signIn()).cookie(dashboard.url, 'signpost-session')}`;
  const token = await newToken();
  const send = (path: string, method: string, body: string | URLSearchParams, type?: string) =>
    fetch(`${dashboard.url}${path}`, {
      method,
      body,
      headers: { cookie, ...headers, ...(type && { 'content-type': type }) },
    });
  const answers = [
    await send('/sign-in/link', 'POST', new URLSearchParams({ token })),
    await send('/session', 'DELETE', ''),
    await send('/session/account', 'POST', JSON.stringify({ id: account }), 'application/json'),
    await send('/rpc/signpost.accounts.v1.AccountsService/RotateKey', 'POST', '{}', 'application/json'),
  ];
  expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 403]);
  // Nothing has changed.
  expect((await fetch(`${dashboard.url}/session`, { headers: { cookie } })).status).toBe(200);
  expect((await redeem(new Browser(), dashboard.url, token)).status).toBe(303);
});

test('every answer carries the security headers', async () => {
  const paths = [
    '/',
    '/session',
    '/sign-in',
    '/sign-in/link',
    '/sign-in/sign-in.css',
    '/healthz',
    '/nowhere',
    '/assets/x',
  ];
  for (const path of paths) {
    const { headers } = await fetch(`${dashboard.url}${path}`);
    const policy = headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('same-origin');
    expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
    expect(headers.get('server') ?? headers.get('x-powered-by')).toBeNull();
  }
});

test('health says whether a core can be reached', async () => {
  expect((await fetch(`${dashboard.url}/healthz`)).status).toBe(200);
  expect(await (await fetch(`${dashboard.url}/readyz`)).json()).toEqual({ status: 'ready' });
});

test('the log says, at most once a minute, why no core can be reached', async () => {
  const other = await startDashboard(signpost, { env: { CORE_CA: (await newAuthority()).certFile } });
  for (let check = 0; check < 2; check++) expect((await fetch(`${other.url}/readyz`)).status).toBe(503);
  const lines = async () => {
    const logged = (await other.log()).split('\n').filter((line) => line.includes('could not reach a core'));
    return logged.map((line) => JSON.parse(line));
  };
  // The file gets a line a moment after it is logged.
  await expect
    .poll(lines)
    .toEqual([
      expect.objectContaining({ level: 40, err: expect.objectContaining({ message: expect.stringMatching(/SSL/) }) }),
    ]);
});

test.each([
  ['a body that is no JSON', '/session/account', 'application/json', '{', 400],
  ['a body of another type', '/session/account', 'text/xml', '<a/>', 415],
  ['a large body', '/session/account', 'application/json', JSON.stringify({ id: 'a'.repeat(20_000) }), 413],
])('%s is refused', async (_, path, type, body, status) => {
  const browser = await signIn();
  const response = await browser.request(`${dashboard.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': type },
    body,
  });
  expect(response.status).toBe(status);
});

test.each([
  ['DASHBOARD_URL', 'http://dashboard.example', 'DASHBOARD_URL must be an https address'],
  ['OIDC_ISSUER', 'http://provider.example', 'OIDC_ISSUER must be an https address'],
  ['OIDC_CLIENT_ID', 'dashboard', 'must be set together'],
  ['SECRET_KEY', 'short', 'SECRET_KEY must be at least 32 random bytes'],
])('the server does not start with %s=%s', async (name, value, sentence) => {
  await expect(startDashboard(signpost, { env: { [name]: value } })).rejects.toThrow(sentence);
});

describe('another instance', () => {
  const startOther = () => startDashboard(signpost, { env: { SECRET_KEY: dashboard.secretKey.toString('base64') } });
  /** The status of a copied cookie at an instance. */
  async function statusAt(instance: Dashboard, cookie: string): Promise<number> {
    const browser = new Browser();
    browser.setCookie(instance.url, 'signpost-session', cookie);
    return (await browser.request(`${instance.url}/session`)).status;
  }
  const cookieOf = (browser: Browser) => browser.cookie(dashboard.url, 'signpost-session') ?? '';
  const signOut = (browser: Browser) =>
    browser.request(`${dashboard.url}/session`, { method: 'DELETE', headers: { origin: dashboard.url } });

  test('learns within seconds that a session ended, and remembers it after a restart', async () => {
    const other = await startOther();
    const [ended, open] = [await signIn(), await signIn()];
    const [cookie, openCookie] = [cookieOf(ended), cookieOf(open)];
    expect(await statusAt(other, cookie)).toBe(200);
    expect((await signOut(ended)).status).toBe(204);
    await expect.poll(() => statusAt(other, cookie)).toBe(401);
    await other.restart();
    // The first request already.
    expect(await statusAt(other, cookie)).toBe(401);
    expect(await statusAt(other, openCookie)).toBe(200);
    const { rows } = await pool.query<{ row: string }>('select s::text as row from ended_sessions s');
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.map(({ row }) => row).join()).not.toMatch(/anna|id |[0-9a-f]{8}-/);
  });

  test('learns later of a session that ended while no core was available', async () => {
    const other = await startOther();
    const browser = await signIn();
    const cookie = cookieOf(browser);
    expect(await statusAt(other, cookie)).toBe(200);
    const [core] = signpost.cores;
    await core?.kill();
    expect((await signOut(browser)).status).toBe(204);
    expect(await statusAt(dashboard, cookie)).toBe(401);
    await core?.restart();
    // A request to the first instance makes it inform the core.
    const next = await signIn();
    await expect.poll(async () => [await statusOf(next), await statusAt(other, cookie)]).toEqual([200, 401]);
  }, 90_000);
});

test('sessions that ended are forgotten after 24 hours', async () => {
  await pool.query(
    `insert into ended_sessions values ('old', now() - interval '25 hours'), ('new', now() - interval '23 hours')`,
  );
  await forgetEndedSessions(pool);
  const { rows } = await pool.query(`select key::text from ended_sessions where key in ('old', 'new')`);
  expect(rows).toEqual([{ key: '\\x6e6577' }]);
});
