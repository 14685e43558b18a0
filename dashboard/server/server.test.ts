import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Code, ConnectError } from '@connectrpc/connect';
import { type Logger, pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { cookieCipherFor } from './cookie-cipher.ts';
import type { Core } from './core.ts';
import { type OpenidProvider, ProviderUnavailableError } from './openid-provider.ts';
import { createServer } from './server.ts';

const SECRET_KEY = Buffer.alloc(32);
const ORIGIN = 'https://dashboard.example';

/** A server before `core`. */
function serverBefore(
  core: object,
  options: { dashboardUrl?: string; provider?: OpenidProvider; maxConnections?: number; logger?: Logger } = {},
) {
  return createServer({
    dashboardUrl: ORIGIN,
    publicUrl: 'https://signpost.example',
    secretKey: SECRET_KEY,
    core: { origin: 'http://127.0.0.1:1', metadata: () => ({}), ...core } as unknown as Core,
    provider: undefined,
    timeoutMs: 1_000,
    appFolder: import.meta.dirname,
    trustedProxies: ['127.0.0.1'],
    logger: pino({ level: 'silent' }),
    ...options,
  });
}

/** Makes `answer` take a while, and counts how many are given at a time. */
function counted<Answer>(answer: () => Answer) {
  const calls = { running: 0, most: 0 };
  const call = async () => {
    calls.running += 1;
    calls.most = Math.max(calls.most, calls.running);
    await sleep(5);
    calls.running -= 1;
    return answer();
  };
  return { calls, call };
}

test('requests for readiness at the same time ask the core once', async () => {
  let asked = 0;
  const server = await serverBefore({
    async isServing() {
      asked += 1;
      return true;
    },
  });
  const answers = await Promise.all(Array.from({ length: 20 }, () => server.inject('/readyz')));
  expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array(20).fill(200));
  expect(asked).toBe(1);
  await server.close();
});

test('made-up links take at most 8 connections to the core', async () => {
  const { calls, call } = counted(() => {
    throw new ConnectError('This sign-in link is invalid.', Code.NotFound);
  });
  const server = await serverBefore({ accounts: { redeemSignInLink: call } });
  const headers = { origin: ORIGIN, 'content-type': 'application/x-www-form-urlencoded' };
  const redeem = () => server.inject({ method: 'POST', url: '/sign-in/link', headers, payload: 'token=made-up' });
  const answers = await Promise.all(Array.from({ length: 100 }, redeem));
  expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array(100).fill(400));
  expect(calls.most).toBe(8);
  await server.close();
});

test('a link that the core could not redeem can be redeemed from the page that says so', async () => {
  const redeemSignInLink = async () => {
    throw new ConnectError('The core does not respond.', Code.Unavailable);
  };
  const server = await serverBefore({ accounts: { redeemSignInLink } });
  const headers = { origin: ORIGIN, 'content-type': 'application/x-www-form-urlencoded' };
  const payload = String(new URLSearchParams({ token: 'a&"b' }));
  const { statusCode, body } = await server.inject({ method: 'POST', url: '/sign-in/link?redeem', headers, payload });
  expect([statusCode, body]).toEqual([503, expect.stringContaining('name="token" value="a&amp;&quot;b"')]);
  await server.close();
});

test('one client’s made-up links do not delay those of others behind the same proxy', async () => {
  const tokens: string[] = [];
  const redeemSignInLink = async ({ token }: { token: string }) => {
    tokens.push(token);
    await sleep(5);
    throw new ConnectError('This sign-in link is invalid.', Code.NotFound);
  };
  const server = await serverBefore({ accounts: { redeemSignInLink } });
  const redeem = (client: string, token: string) => {
    const headers = { origin: ORIGIN, 'content-type': 'application/x-www-form-urlencoded', 'x-forwarded-for': client };
    return server.inject({ method: 'POST', url: '/sign-in/link', headers, payload: `token=${token}` });
  };
  const made = Array.from({ length: 100 }, (_, n) => redeem(`2001:db8::${n}`, 'made-up'));
  await Promise.all([...made, redeem('192.0.2.1', 'real')]);
  expect(tokens).toHaveLength(101);
  expect(tokens.indexOf('real')).toBeLessThan(20);
  await server.close();
});

/** The headers of a browser that has begun a sign-in with the state `s`. */
async function begun(wayIn: { to?: string; account?: string }): Promise<{ cookie: string }> {
  const checks = { state: 's', nonce: 'n', verifier: 'v', to: `${ORIGIN}/`, ...wayIn };
  const encrypted = await cookieCipherFor('sign-in', SECRET_KEY).encrypt(checks, Math.floor(Date.now() / 1_000) + 60);
  const suffix = createHash('sha256').update(checks.state).digest('base64url').slice(0, 16);
  return { cookie: `__Host-sign-in-${suffix}=${encrypted}` };
}

test('made-up codes are checked by the provider 50 at a time', async () => {
  const { calls, call } = counted(() => {
    throw new Error('invalid_grant');
  });
  const server = await serverBefore({}, { provider: { finish: call } as unknown as OpenidProvider });
  const headers = await begun({});
  const finish = () => server.inject({ url: '/sign-in/callback?code=made-up&state=s', headers });
  const answers = await Promise.all(Array.from({ length: 200 }, finish));
  expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array(200).fill(400));
  expect(calls.most).toBe(50);
  await server.close();
});

test('requests that anyone can make to fail do not write a line each', async () => {
  const lines: string[] = [];
  const logger = pino({ base: null }, { write: (line: string) => void lines.push(line) });
  const unavailable = async () => {
    throw new ProviderUnavailableError('the OpenID provider could not be discovered');
  };
  const invalid = async () => {
    throw Object.assign(new Error('invalid'), { code: 'ERR_INVALID' });
  };
  const provider = { begin: unavailable, finish: invalid, readLogoutToken: invalid } as unknown as OpenidProvider;
  const server = await serverBefore({}, { provider, logger });
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  const headers = await begun({});
  for (let request = 0; request < 20; request++) {
    await server.inject('/sign-in');
    await server.inject({ url: '/sign-in/callback?code=made-up&state=s', headers });
    await server.inject({ method: 'POST', url: '/back-channel-logout', headers: form, payload: 'logout_token=junk' });
  }
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({ msg: 'the OpenID provider is unavailable', failures: 1 }),
    expect.objectContaining({
      msg: 'a sign-in at the OpenID provider was rejected',
      rejected: 1,
      reason: 'ERR_INVALID',
    }),
    expect.objectContaining({ msg: 'a logout token was rejected', rejected: 1, reason: 'ERR_INVALID' }),
  ]);
  await server.close();
});

test('a sign-in that the core could not finish can be begun again for the same page and account', async () => {
  const accounts = {
    listMemberships: async () => {
      throw new ConnectError('The core does not respond.', Code.Unavailable);
    },
  };
  const provider = { finish: async () => ({ verifiedEmail: 'a@example.com', name: null, subject: 's' }) };
  const server = await serverBefore({ accounts }, { provider: provider as unknown as OpenidProvider });
  const headers = await begun({ to: `${ORIGIN}/team`, account: 'acct_1' });
  const { statusCode, body } = await server.inject({ url: '/sign-in/callback?code=c&state=s', headers });
  const again = new URLSearchParams({ to: `${ORIGIN}/team`, account: 'acct_1' });
  expect([statusCode, body]).toEqual([503, expect.stringContaining(`"/sign-in?${again}"`.replace('&', '&amp;'))]);
  await server.close();
});

test.each([
  ['https', ORIGIN, '__Host-session', 'signpost-session', ['HttpOnly', 'Path=/', 'SameSite=Lax', 'Secure']],
  ['http', 'http://localhost:8090', 'signpost-session', '__Host-session', ['HttpOnly', 'Path=/', 'SameSite=Lax']],
])(
  'with an %s address the cookie has its name, and no other one is read',
  async (_, dashboardUrl, name, other, attributes) => {
    const membership = {
      accountId: 'acct_1',
      accountName: 'A',
      member: { id: 'mbr_1', email: 'a@example.com', role: Role.VIEWER },
    };
    const accounts = {
      redeemSignInLink: async () => ({ membership }),
      listMemberships: async () => ({ memberships: [membership] }),
      listEndedSessions: async () => ({ sessions: [], asOf: undefined }),
    };
    const server = await serverBefore({ accounts }, { dashboardUrl });
    const headers = { origin: dashboardUrl, 'content-type': 'application/x-www-form-urlencoded' };
    const answer = await server.inject({ method: 'POST', url: '/sign-in/link', headers, payload: 'token=t' });
    const [content = '', ...rest] = String(answer.headers['set-cookie']).split('; ');
    expect(rest.filter((each) => !each.startsWith('Expires')).sort()).toEqual(attributes);
    const value = content.slice(content.indexOf('=') + 1);
    const statusWith = async (cookie: string) =>
      (await server.inject({ url: '/session', headers: { cookie: `${cookie}=${value}` } })).statusCode;
    expect([content, await statusWith(name), await statusWith(other)]).toEqual([`${name}=${value}`, 200, 401]);
    const ended = await server.inject({
      method: 'DELETE',
      url: '/session',
      headers: { origin: dashboardUrl, cookie: content },
    });
    expect(ended.headers['set-cookie']).toMatch(new RegExp(`^${name}=;`));
    await server.close();
  },
);

test('questions about sessions take at most 32 connections to the core, and persons take turns', async () => {
  const membership = { accountId: 'acct_1', accountName: 'A', member: { id: 'mbr_1', role: Role.VIEWER } };
  const { calls, call } = counted(() => ({ memberships: [membership] }));
  const listEndedSessions = async () => ({ sessions: [], asOf: undefined });
  const server = await serverBefore({ accounts: { listMemberships: call, listEndedSessions } });
  const now = Math.floor(Date.now() / 1_000);
  const cookieOf = async (email: string) => {
    const session = { id: email, startedAt: now, expiresAt: now + 60, email, subject: email, name: null };
    const content = { ...session, account: 'acct_1', member: 'mbr_1' };
    return `__Host-session=${await cookieCipherFor('session', SECRET_KEY).encrypt(content, now + 60)}`;
  };
  const [flooding, other] = await Promise.all(['flooding@example.com', 'other@example.com'].map(cookieOf));
  const order: string[] = [];
  const describe = async (who: string, cookie = '') => {
    const { statusCode } = await server.inject({ url: '/session', headers: { cookie } });
    order.push(who);
    return statusCode;
  };
  const flood = Array.from({ length: 500 }, () => describe('flooding', flooding));
  expect(await Promise.all([...flood, describe('other', other)])).toEqual(Array(501).fill(200));
  expect(calls.most).toBe(32);
  expect(order.indexOf('other')).toBeLessThan(200);
  await server.close();
});

test.each([
  ['malformed', '/%', 400],
  ['too long', `/rpc/${'x'.repeat(300)}/y`, 414],
])('a path that is %s is rejected like other requests', async (_, url, status) => {
  const server = await serverBefore({});
  const { statusCode, headers, body } = await server.inject({ method: 'POST', url });
  expect(statusCode).toBe(status);
  expect(headers['content-security-policy']).toContain("default-src 'none'");
  expect(JSON.parse(body)).toEqual({ error: 'The path is malformed, or too long.' });
  await server.close();
});

test('a connection beyond the limit replaces one that has long been idle', async () => {
  const server = await serverBefore({ isServing: async () => true }, { maxConnections: 10 });
  await server.listen({ port: 0, host: '127.0.0.1' });
  const { port } = server.server.address() as AddressInfo;
  const sockets: Socket[] = [];
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await server.close();
  });
  const open = async () => {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    sockets.push(socket);
    await once(socket, 'connect');
    return socket;
  };
  const idle = await open();
  const ended = once(idle, 'close');
  for (let n = 1; n < 10; n++) await open();
  const further = await open();
  further.write('GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n');
  const [answer] = await once(further, 'data');
  expect(String(answer)).toContain('200 OK');
  idle.resume();
  await ended;
});

test('on close, a connection with a request in progress is closed after its answer', async () => {
  const asked = Promise.withResolvers<void>();
  const serving = Promise.withResolvers<boolean>();
  const server = await serverBefore({
    isServing() {
      asked.resolve();
      return serving.promise;
    },
  });
  await server.listen({ port: 0, host: '127.0.0.1' });
  const socket = connect((server.server.address() as AddressInfo).port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.write('GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n');
  await asked.promise;
  const closed = server.close();
  await sleep(100);
  serving.resolve(true);
  const received = Buffer.concat(await socket.toArray()).toString();
  expect(received).toMatch(/^HTTP\/1.1 200 .*\r\nconnection: close\r\n/is);
  await closed;
});

/** The statuses of all answers to a request on a connection that the server closes. */
async function statusesOf(request: string): Promise<number[]> {
  const server = await serverBefore({});
  await server.listen({ port: 0, host: '127.0.0.1' });
  const { port } = server.server.address() as AddressInfo;
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  onTestFinished(async () => {
    socket.destroy();
    await server.close();
  });
  socket.write(request);
  const received = Buffer.concat(await socket.toArray()).toString();
  return [...received.matchAll(/HTTP\/1\.1 (\d+)/gm)].map(([, status]) => Number(status));
}

test.each([
  ['100-continue', [100, 200]],
  ['something-else', [417]],
])('a request with `Expect: %s` is answered', async (expectation, statuses) => {
  const request = `GET /healthz HTTP/1.1\r\nhost: a\r\nexpect: ${expectation}\r\nconnection: close\r\n\r\n`;
  expect(await statusesOf(request)).toEqual(statuses);
});

test('a request that is refused before its malformed body has one answer', async () => {
  const head = 'POST /sign-in/link HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n';
  expect(await statusesOf(`${head}zz\r\n`)).toEqual([403]);
});

test('a connection that can’t be accepted does not end the process', async () => {
  const server = await serverBefore({});
  await server.listen({ port: 0 });
  const error = Object.assign(new Error('accept ENOBUFS'), { code: 'ENOBUFS' });
  expect(server.server.emit('error', error)).toBe(true);
  await server.close();
});
