import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DescService } from '@bufbuild/protobuf';
import { type Client, Code, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { ErrorInfoSchema } from '../../proto/gen/google/rpc/error_details_pb.ts';
import { AccountsService, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { BatchesService } from '../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { DomainsService } from '../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { internal } from '../../test/contract/internal.ts';
import { type Signpost, startSignpost } from '../../test/harness/processes.ts';
import { OWN_SERVICES } from '../../test/harness/rpc-services.ts';
import { scrape, sumOf } from '../../test/harness/scrape.ts';
import type { Browser } from './browser.fixture.ts';
import { type Dashboard, signInWithLink, startDashboard } from './dashboard.fixture.ts';
import { MEMBER_METHODS } from './member-methods.ts';

/** Calls of browsers, through the dashboard's server to a real core. */

const ROLES = { viewer: Role.VIEWER, editor: Role.EDITOR, admin: Role.ADMIN, owner: Role.OWNER } as const;
type RoleName = keyof typeof ROLES;

const TIMEOUT_MS = 2_000;

let signpost: Signpost;
let dashboard: Dashboard;
let account: string;
const metricsPort = await freePort();
const browsers = new Map<RoleName, Browser>();

beforeAll(async () => {
  // Without a worker batches stay unfinished, so watching one goes on.
  signpost = await startSignpost({ gateways: 0, env: { ROLES: 'rpc', BATCH_WINDOW_MS: '0' } });
  dashboard = await startDashboard(signpost, {
    env: { CORE_TIMEOUT_MS: String(TIMEOUT_MS), METRICS_PORT: String(metricsPort) },
  });
  account = (await signpost.createAccount({ name: 'Bakery' })).accountId;
  for (const [name, role] of Object.entries(ROLES)) {
    const email = `${name}@example.com`;
    const accounts = internal(signpost, AccountsService, account);
    await accounts.addMember({ email, role });
    browsers.set(name as RoleName, await signInWithLink(dashboard, (await accounts.createSignInLink({ email })).token));
  }
});

const sessionIn = (browser?: Browser) => `signpost-session=${browser?.cookie(dashboard.url, 'signpost-session')}`;
const cookieOf = (role: RoleName) => sessionIn(browsers.get(role));

/** A client as a page has one. */
function client<Service extends DescService>(
  service: Service,
  role: RoleName,
  { binary = true, headers = {} as Record<string, string>, cookie = cookieOf(role), url = dashboard.url } = {},
): Client<Service> {
  const transport = createConnectTransport({
    baseUrl: `${url}/rpc`,
    httpVersion: '1.1',
    useBinaryFormat: binary,
    interceptors: [
      (next) => (request) => {
        for (const [name, value] of Object.entries({ ...headers, cookie, origin: url })) {
          request.header.set(name, value);
        }
        return next(request);
      },
    ],
  });
  return createClient(service, transport);
}

/** Posts to a method, as JSON. */
function post(path: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) {
  return fetch(`${dashboard.url}/rpc/${path}`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', cookie: cookieOf('owner'), origin: dashboard.url, ...headers },
    signal: AbortSignal.timeout(30_000),
  });
}

/** How many calls of a method to the core have ended so. */
async function endedCalls(method: string, code: string): Promise<number> {
  const labels = { rpc_method: `signpost.${method}`, rpc_response_status_code: code };
  return sumOf(await scrape(metricsPort), 'rpc_client_call_duration_seconds_count', labels);
}

const outcome = (call: Promise<unknown>) =>
  call.then(
    () => 'allowed',
    (error: unknown) => readFailure(error).reason,
  );

describe.each([
  ['binary', true],
  ['JSON', false],
])('%s calls', (_, binary) => {
  test.each(Object.keys(ROLES) as RoleName[])('do what the role %s allows', async (role) => {
    const as = <Service extends DescService>(service: Service) => client(service, role, { binary });
    const name = `${role} ${binary}`;
    const domain = { hostname: `${role}-${binary}.example.com` };
    expect({
      read: await outcome(as(CodesService).listCodes({})),
      create: await outcome(as(CodesService).createCode({ targetUrl: 'https://example.com/', name })),
      administer: await outcome(as(DomainsService).addDomain(domain)),
      own: await outcome(as(AccountsService).rotateKey({})),
    }).toEqual({
      read: 'allowed',
      create: role === 'viewer' ? 'ROLE_REQUIRED' : 'allowed',
      administer: role === 'admin' || role === 'owner' ? 'allowed' : 'ROLE_REQUIRED',
      own: role === 'owner' ? 'allowed' : 'ROLE_REQUIRED',
    });
  });

  test('stream', async () => {
    const id = await newBatch();
    const stopped = new AbortController();
    for await (const { batch } of client(BatchesService, 'viewer', { binary }).watchBatch(
      { id },
      { signal: stopped.signal },
    )) {
      expect(batch?.id).toBe(id);
      break;
    }
    stopped.abort();
    const missing = client(BatchesService, 'viewer', { binary }).watchBatch({ id: 'batch_x' });
    await expect(drain(missing)).rejects.toMatchObject({ code: Code.NotFound });
  });
});

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

async function newBatch(): Promise<string> {
  const rows = [{ targetUrl: 'https://example.com/' }];
  const { batch } = await internal(signpost, BatchesService, account).createBatch({ rows });
  return batch?.id ?? '';
}

test('calls act for the account and the member of the session only, and the audit names the member', async () => {
  const foreign = (await signpost.createAccount()).accountId;
  const headers = {
    'signpost-account': foreign,
    'signpost-member': 'mbr_00000000000000000000000000',
    'signpost-actor': 'somebody',
    authorization: 'Bearer sk_live_x',
  };
  const accounts = client(AccountsService, 'owner', { headers });
  expect((await accounts.getAccount({})).account?.id).toBe(account);
  await client(CodesService, 'owner', { headers }).createCode({ targetUrl: 'https://example.com/' });
  const { entries } = await accounts.listAuditEntries({ limit: 1 });
  expect(entries[0]?.actor).toBe('owner@example.com');
});

describe('a page that shows another account or person than the session’s', () => {
  const page = (account: string, member: string) => ({
    'signpost-shown-account': account,
    'signpost-shown-member': member,
  });
  const memberOf = async (role: RoleName) => {
    const { members } = await client(AccountsService, 'owner').listMembers({});
    return members.find(({ email }) => email === `${role}@example.com`)?.id ?? '';
  };

  test.each([
    ['another account', async () => page('acct_other', await memberOf('owner'))],
    ['another person', async () => page(account, await memberOf('viewer'))],
  ])('can neither change nor read anything for %s, and learns of it', async (name, shown) => {
    const id = await newBatch();
    const headers = await shown();
    for (const call of [
      () => client(CodesService, 'owner', { headers }).createCode({ targetUrl: 'https://example.com/', name }),
      () => drain(client(BatchesService, 'owner', { headers }).watchBatch({ id })),
    ]) {
      const error = ConnectError.from(await call().catch((thrown) => thrown));
      expect([error.code, error.rawMessage]).toEqual([
        Code.FailedPrecondition,
        'In another tab, another account was opened or another person has signed in. Reload this page.',
      ]);
      expect(error.metadata.get('signpost-account-changed')).toBe('true');
      // By which pages put it in the reader's language.
      expect(error.findDetails(ErrorInfoSchema)[0]?.reason).toBe('ACCOUNT_CHANGED');
    }
    const { codes } = await client(CodesService, 'owner').listCodes({ search: name });
    expect(codes).toEqual([]);
  });

  test('may call if it shows the session’s', async () => {
    const codes = client(CodesService, 'owner', { headers: page(account, await memberOf('owner')) });
    expect(await outcome(codes.listCodes({}))).toBe('allowed');
  });
});

test('the browser gets neither the service token nor headers of the core beyond the protocol’s', async () => {
  const response = await post('signpost.codes.v1.CodesService/ListCodes', '{}');
  expect(response.status).toBe(200);
  const text = `${JSON.stringify([...response.headers])}${await response.text()}`;
  expect(text).not.toContain(signpost.serviceToken);
  expect([...response.headers.keys()].filter((name) => name.startsWith('signpost-'))).toEqual([]);
  expect(response.headers.get('content-security-policy')).toContain("default-src 'none'");
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(await dashboard.log()).not.toContain(signpost.serviceToken);
});

test('members may call what acts for an account and a role allows, and nothing else', async () => {
  const names = OWN_SERVICES.flatMap(({ typeName, methods }) => methods.map(({ name }) => `${typeName}/${name}`));
  const others = names.filter((name) => !MEMBER_METHODS.has(name));
  expect(others).toEqual(expect.arrayContaining(['signpost.accounts.v1.AccountsService/ListAccounts']));
  const standard = ['grpc.health.v1.Health/Check', 'grpc.reflection.v1.ServerReflection/ServerReflectionInfo'];
  for (const name of [...others, ...standard, 'x/y', 'signpost.codes.v1.CodesService/__proto__']) {
    const response = await post(name, '{}');
    expect([name, response.status, await response.json()]).toEqual([
      name,
      501,
      expect.objectContaining({ code: 'unimplemented' }),
    ]);
  }
});

describe('a call is rejected before its message is read', () => {
  /** The status of an answer to headers alone: the message never comes. */
  function statusOfHead(headers: Readonly<Record<string, string>>): Promise<string> {
    const { hostname, port } = new URL(dashboard.url);
    const socket = connect(Number(port), hostname);
    const head = {
      host: `${hostname}:${port}`,
      'content-type': 'application/json',
      'content-length': '100',
      ...headers,
    };
    const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}`);
    socket.setTimeout(10_000, () => socket.destroy(new Error('no answer')));
    socket.write(`POST /rpc/signpost.codes.v1.CodesService/ListCodes HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    return new Promise((resolve, reject) => {
      socket.once('data', (data) => {
        resolve(data.toString().slice(9, 12));
        socket.destroy();
      });
      socket.once('error', reject);
    });
  }

  test('without a session', async () => expect(await statusOfHead({ origin: dashboard.url })).toBe('401'));
  test('from another origin', async () => expect(await statusOfHead({ cookie: cookieOf('owner') })).toBe('403'));
  test('if it announces more than 8 MiB', async () => {
    const headers = { origin: dashboard.url, cookie: cookieOf('owner'), 'content-length': '9000000' };
    expect(await statusOfHead(headers)).toBe('429');
  });
});

test('a rejected call is answered on a connection that can be used again', async () => {
  const { hostname, port } = new URL(dashboard.url);
  const message = JSON.stringify({ query: 'a'.repeat(50_000) });
  const head = `POST /rpc/signpost.codes.v1.CodesService/ListCodes HTTP/1.1\r\nhost: ${hostname}:${port}\r\norigin: ${dashboard.url}\r\ncontent-type: application/json\r\ncontent-length: ${message.length}\r\n\r\n`;
  const socket = connect(Number(port), hostname);
  socket.setTimeout(10_000, () => socket.destroy(new Error('no answer')));
  let received = '';
  socket.on('data', (data) => {
    received += data.toString();
  });
  socket.on('error', () => {});
  for (let call = 1; call <= 3; call++) {
    socket.write(head);
    // The answer is sent before the message has arrived.
    await expect.poll(() => received.split('HTTP/1.1 401').length - 1, { timeout: 5_000 }).toBe(call);
    socket.write(message);
  }
  socket.destroy();
});

test('a message without an announced length is read up to 8 MiB', async () => {
  const chunk = new Uint8Array(1024 * 1024).fill(0x20);
  let sent = 0;
  const body = new ReadableStream({
    pull(controller) {
      sent += chunk.length;
      if (sent > 64 * chunk.length) controller.close();
      else controller.enqueue(chunk);
    },
  });
  const response = await fetch(`${dashboard.url}/rpc/signpost.batches.v1.BatchesService/CreateBatch`, {
    method: 'POST',
    body,
    duplex: 'half',
    headers: { 'content-type': 'application/json', cookie: cookieOf('owner'), origin: dashboard.url },
  } as RequestInit).then(
    ({ status }) => status,
    // The connection may be closed before everything is sent.
    () => 429,
  );
  expect(response).toBe(429);
  expect(sent).toBeLessThan(64 * chunk.length);
});

/**
 * Posts a batch of blanks, which the core rejects; the last bytes follow once `rest` has resolved. Returns the status.
 */
async function postSlowly(cookie: string, bytes: number, rest: Promise<void> = Promise.resolve()): Promise<number> {
  const last = '{"rows":[]}';
  const body = new ReadableStream({
    async start(controller) {
      controller.enqueue(new Uint8Array(bytes).fill(0x20));
      await rest;
      controller.enqueue(new TextEncoder().encode(last));
      controller.close();
    },
  });
  const response = await fetch(`${dashboard.url}/rpc/signpost.batches.v1.BatchesService/CreateBatch`, {
    method: 'POST',
    body,
    duplex: 'half',
    headers: { 'content-type': 'application/json', cookie, origin: dashboard.url },
  } as RequestInit);
  return response.status;
}

test('a call’s timeout begins once its message has arrived', async () => {
  expect(await postSlowly(cookieOf('owner'), 100, sleep(TIMEOUT_MS + 500))).toBe(400);
});

test('four large messages of an account are received at a time, the fifth waits, and those of others do not', async () => {
  const email = 'other@example.com';
  const accounts = internal(signpost, AccountsService, (await signpost.createAccount({ name: 'Other' })).accountId);
  await accounts.addMember({ email, role: Role.OWNER });
  const { token } = await accounts.createSignInLink({ email });
  const other = sessionIn(await signInWithLink(dashboard, token));
  const { promise: rest, resolve: finish } = Promise.withResolvers<void>();
  const MIB = 1024 * 1024;
  const four = Array.from({ length: 4 }, () => postSlowly(cookieOf('owner'), MIB, rest));
  // Until those four are being received.
  await expect.poll(() => Promise.race([postSlowly(cookieOf('admin'), MIB), sleep(1_000, 'waits')])).toBe('waits');
  const fifth = postSlowly(cookieOf('admin'), MIB);
  expect(await outcome(client(CodesService, 'owner').listCodes({}))).toBe('allowed');
  expect(await postSlowly(other, MIB)).not.toBe(503);
  finish();
  expect(await Promise.all([...four, fifth])).not.toContain(503);
});

test('calls without a session, or with another content type, fail in the protocol’s form', async () => {
  const method = 'signpost.codes.v1.CodesService/ListCodes';
  const signedOut = await post(method, '{}', { cookie: '' });
  expect([signedOut.status, await signedOut.json()]).toEqual([
    401,
    expect.objectContaining({ code: 'unauthenticated', message: 'You are signed out. Sign in again.' }),
  ]);
  const form = await post(method, 'a=b', { 'content-type': 'application/x-www-form-urlencoded' });
  expect([form.status, await form.json()]).toEqual([400, expect.objectContaining({ code: 'invalid_argument' })]);
  const ended = await post('signpost.batches.v1.BatchesService/WatchBatch', '', {
    cookie: '',
    'content-type': 'application/connect+json',
  });
  const [flags, ...rest] = new Uint8Array(await ended.arrayBuffer());
  expect([ended.status, flags]).toEqual([200, 2]);
  expect(JSON.parse(Buffer.from(rest.slice(4)).toString())).toMatchObject({ error: { code: 'unauthenticated' } });
});

test('calls that the browser gave up before they were forwarded do not count as running', async () => {
  const [core] = signpost.cores;
  // By then the server asks the core again which sessions have ended, before it forwards a call.
  await sleep(2_500);
  process.kill(core?.pid ?? 0, 'SIGSTOP');
  try {
    const aborted = new AbortController();
    const calls = Array.from({ length: 60 }, () =>
      client(CodesService, 'owner').listCodes({}, { signal: aborted.signal }),
    );
    await sleep(300);
    aborted.abort();
    await Promise.allSettled(calls);
  } finally {
    process.kill(core?.pid ?? 0, 'SIGCONT');
  }
  await sleep(1_000);
  expect(await outcome(client(CodesService, 'owner').listCodes({}))).toBe('allowed');
});

describe('the database', () => {
  let pool: pg.Pool;
  beforeAll(() => {
    pool = new pg.Pool({ connectionString: signpost.databaseUrl });
  });
  afterAll(() => pool.end());

  test('does nothing any more for a call that the browser has aborted', async () => {
    const lock = await pool.connect();
    try {
      await lock.query('begin; lock table codes in access exclusive mode');
      const aborted = new AbortController();
      const call = client(CodesService, 'owner').createCode(
        { targetUrl: 'https://example.com/', name: 'Aborted' },
        { signal: aborted.signal },
      );
      const waiting = `select count(*)::int as n from pg_stat_activity
                       where datname = current_database() and wait_event_type = 'Lock'`;
      const waiters = async () => (await pool.query<{ n: number }>(waiting)).rows[0]?.n;
      await expect.poll(waiters, { timeout: 5_000 }).toBeGreaterThan(0);
      aborted.abort();
      await expect(call).rejects.toMatchObject({ code: Code.Canceled });
      // The browser has given up by now; the core learns of it from the dashboard, and must before it can commit.
      await sleep(2_000);
    } finally {
      await lock.query('commit');
      lock.release();
    }
    await sleep(500);
    expect((await pool.query(`select from codes where name = 'Aborted'`)).rowCount).toBe(0);
  });

  test('is asked by at most 50 calls of a person at a time, also if they all arrive at once', async () => {
    const [core] = signpost.cores;
    // With the default timeout: the calls wait for the lock.
    const patient = await startDashboard(signpost);
    onTestFinished(() => patient.stop());
    const { token } = await internal(signpost, AccountsService, account).createSignInLink({
      email: 'owner@example.com',
    });
    const browser = await signInWithLink(patient, token);
    const cookie = `signpost-session=${browser.cookie(patient.url, 'signpost-session')}`;
    const lock = await pool.connect();
    try {
      await lock.query('begin; lock table codes in access exclusive mode');
      // By then the server asks the core again which sessions have ended, and all calls wait for its answer together.
      await sleep(2_500);
      process.kill(core?.pid ?? 0, 'SIGSTOP');
      const outcomes: string[] = [];
      const calls = Array.from({ length: 80 }, async () => {
        outcomes.push(await outcome(client(CodesService, 'owner', { cookie, url: patient.url }).listCodes({})));
      });
      await sleep(1_000);
      process.kill(core?.pid ?? 0, 'SIGCONT');
      await expect.poll(() => outcomes.length).toBeGreaterThanOrEqual(30);
      await lock.query('rollback');
      await Promise.all(calls);
      expect(Object.groupBy(outcomes, (each) => each).allowed).toHaveLength(50);
    } finally {
      process.kill(core?.pid ?? 0, 'SIGCONT');
      lock.release(true);
    }
  });
});

test('a core that does not answer makes calls fail in time', async () => {
  const [core] = signpost.cores;
  process.kill(core?.pid ?? 0, 'SIGSTOP');
  try {
    const call = client(CodesService, 'viewer').listCodes({});
    await expect(call).rejects.toMatchObject({ code: Code.DeadlineExceeded });
  } finally {
    process.kill(core?.pid ?? 0, 'SIGCONT');
  }
  expect(await outcome(client(CodesService, 'viewer').listCodes({}))).toBe('allowed');
});

test('a person may run a limited number of calls at a time, in however many sessions', async () => {
  const id = await newBatch();
  const stopped = new AbortController();
  const accounts = internal(signpost, AccountsService, account);
  const { token } = await accounts.createSignInLink({ email: 'admin@example.com' });
  const cookies = [cookieOf('admin'), sessionIn(await signInWithLink(dashboard, token))];
  const endings = Array.from({ length: 51 }, async (_, nth) => {
    const batches = client(BatchesService, 'admin', { cookie: cookies[nth % 2] });
    try {
      await drain(batches.watchBatch({ id }, { signal: stopped.signal }));
      return undefined;
    } catch (error) {
      return ConnectError.from(error).code;
    }
  });
  expect(await Promise.race(endings)).toBe(Code.ResourceExhausted);
  stopped.abort();
  expect((await Promise.all(endings)).filter((code) => code === Code.ResourceExhausted)).toHaveLength(1);
  await expect.poll(() => outcome(client(CodesService, 'admin').listCodes({}))).toBe('allowed');
});

test('a stream that its reader leaves is a cancelled call, of a request without a complete answer', async () => {
  const left = async () => {
    const unanswered = { http_route: '/rpc/:service/:method', http_response_status_code: '499' };
    return [
      await endedCalls('batches.v1.BatchesService/WatchBatch', 'canceled'),
      sumOf(await scrape(metricsPort), 'http_server_request_duration_seconds_count', unanswered),
    ];
  };
  const [calls = 0, requests = 0] = await left();
  const stopped = new AbortController();
  const id = await newBatch();
  const watching = client(BatchesService, 'viewer').watchBatch({ id }, { signal: stopped.signal });
  await watching[Symbol.asyncIterator]().next();
  stopped.abort();
  await expect.poll(left).toEqual([calls + 1, requests + 1]);
});

test('a core that is killed ends running calls as unavailable, and calls succeed once it is back', async () => {
  const id = await newBatch();
  const [core] = signpost.cores;
  const watching = client(BatchesService, 'viewer').watchBatch({ id })[Symbol.asyncIterator]();
  await watching.next();
  await core?.kill();
  await expect(watching.next()).rejects.toMatchObject({ code: Code.Unavailable });
  await expect(client(CodesService, 'viewer').listCodes({})).rejects.toMatchObject({ code: Code.Unavailable });
  const stream = client(BatchesService, 'viewer').watchBatch({ id });
  await expect(drain(stream)).rejects.toMatchObject({ code: Code.Unavailable });
  expect(await endedCalls('batches.v1.BatchesService/WatchBatch', 'unavailable')).toBe(2);
  expect(await endedCalls('codes.v1.CodesService/ListCodes', 'unavailable')).toBe(1);
  expect((await fetch(`${dashboard.url}/readyz`)).status).toBe(503);
  const readiness = await fetch(`http://${LOOPBACK}:${metricsPort}/readyz`);
  expect([readiness.status, await readiness.text()]).toEqual([503, 'The core is unavailable.']);
  expect((await fetch(`${dashboard.url}/healthz`)).status).toBe(200);
  const session = await browsers.get('viewer')?.request(`${dashboard.url}/session`);
  expect([session?.status, await session?.json()]).toEqual([503, { error: expect.stringContaining('unavailable') }]);
  const answer = await post('signpost.codes.v1.CodesService/ListCodes', '{}');
  expect(await answer.json()).toMatchObject({ code: 'unavailable' });
  await core?.restart();
  expect(await outcome(client(CodesService, 'viewer').listCodes({}))).toBe('allowed');
  expect((await browsers.get('viewer')?.request(`${dashboard.url}/session`))?.status).toBe(200);
});

test('stopping ends running streams, and then the server', async () => {
  const id = await newBatch();
  const watching = client(BatchesService, 'viewer').watchBatch({ id })[Symbol.asyncIterator]();
  await watching.next();
  const ended = expect(watching.next()).rejects.toMatchObject({ code: Code.Unavailable });
  await dashboard.stop('SIGTERM');
  await ended;
  expect(await dashboard.log()).toContain('the dashboard has stopped');
});
