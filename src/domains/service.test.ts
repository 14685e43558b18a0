import { fromBinary } from '@bufbuild/protobuf';
import type { Client } from '@connectrpc/connect';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { requiredField } from '../../common/contract/required-field.ts';
import { ROUTES } from '../../common/log/topics.ts';
import { AccountsService } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { type Domain, DomainState, DomainsService } from '../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { internal } from '../../test/contract/internal.ts';
import { type Dns, startDns } from '../../test/harness/dns.ts';
import { type Signpost, startSignpost } from '../../test/harness/processes.ts';
import { wrongClock } from '../../test/harness/wrong-clock.ts';
import { openDatabase } from '../db/database.ts';
import { entities } from '../entities.ts';
import { republishHosts } from './republish.ts';

const { PENDING, VERIFIED, LIVE, FAILING } = DomainState;

let dns: Dns;
let signpost: Signpost;
let pool: pg.Pool;
let account: string;
let domains: Client<typeof DomainsService>;

beforeAll(async () => {
  dns = await startDns();
  signpost = await startSignpost({
    gateways: 0,
    env: {
      // Only the test's calls change states: the background checks have their own tests.
      ROLES: 'rpc',
      PUBLIC_URL: 'https://sign.example',
      PLATFORM_ADDRESSES: '192.0.2.10',
      DNS_RESOLVERS: dns.address,
    },
  });
  pool = new pg.Pool({ connectionString: signpost.databaseUrl });
});
afterAll(() => pool.end());
beforeEach(async () => {
  ({ accountId: account } = await signpost.createAccount());
  domains = clientFor(account);
});

const clientFor = (accountId: string) => internal(signpost, DomainsService, accountId);

let hostnames = 0;
const newHostname = () => `menu${hostnames++}.example.com`;

async function add(by = domains, hostname = newHostname()): Promise<Domain> {
  return requiredField((await by.addDomain({ hostname })).domain, 'domain');
}

async function verify({ id }: Domain, by = domains): Promise<Domain> {
  return requiredField((await by.verifyDomain({ id })).domain, 'domain');
}

const publishProof = ({ txtName, txtValue }: Domain) => dns.set(txtName, 'TXT', txtValue);
const pointAtPlatform = ({ hostname }: Domain) => dns.set(hostname, 'CNAME', 'sign.example');

async function addLive(by = domains, hostname = newHostname()): Promise<Domain> {
  const domain = await add(by, hostname);
  publishProof(domain);
  pointAtPlatform(domain);
  return verify(domain, by);
}

async function refusal(call: Promise<unknown>): Promise<{ reason: string; message: string }> {
  const { reason, message } = readFailure(
    await call.then(
      () => undefined,
      (error: unknown) => error,
    ),
  );
  return { reason, message };
}

/** Events and topics of a domain's messages in the outbox. */
async function outbox({ id, hostname }: Domain): Promise<string[]> {
  const { rows } = await pool.query<{ topic: string; type: string | null }>(
    `select topic, headers->>'ce_type' as type from outbox where key in ($1, $2) order by id`,
    [id, `host:${hostname}`],
  );
  return rows.map(({ topic, type }) => type ?? topic);
}

async function audit({ id }: Domain): Promise<string[]> {
  const { rows } = await pool.query<{ entry: string }>(
    `select actor || ' ' || action as entry from audit_entries where subject = $1 order by id`,
    [id],
  );
  return rows.map(({ entry }) => entry.replace('DomainsService/', ''));
}

test('a domain is due for its first check at once, also if the clock of its core is ahead', async () => {
  const ahead = await startSignpost({ gateways: 0, env: { ROLES: 'rpc', NODE_OPTIONS: wrongClock(3_600_000) } });
  const { accountId } = await ahead.createAccount();
  await internal(ahead, DomainsService, accountId).addDomain({ hostname: 'ahead.example' });
  const client = new pg.Client(ahead.databaseUrl);
  await client.connect();
  onTestFinished(() => client.end());
  const { rows } = await client.query('select check_at <= now() as due from domains');
  expect(rows).toEqual([{ due: true }]);
});

test('a domain’s state follows DNS from pending through verified to live', async () => {
  const domain = await add(domains, 'Münzen.Example.');
  expect(domain).toMatchObject({
    id: expect.stringMatching(/^domain_/),
    hostname: 'xn--mnzen-kva.example',
    state: PENDING,
    txtName: '_signpost.xn--mnzen-kva.example',
    txtValue: expect.stringMatching(/^signpost-verify=[0-9a-f]{32}$/),
    problem: '',
  });
  expect(await verify(domain)).toMatchObject({ state: PENDING, problem: expect.stringContaining('no TXT record') });
  publishProof(domain);
  expect(await verify(domain)).toMatchObject({ state: VERIFIED, problem: expect.stringContaining('no address') });
  // After the verification, the TXT record is no longer needed.
  dns.set(domain.txtName, 'TXT');
  expect(await verify(domain)).toMatchObject({ state: VERIFIED });
  dns.set(domain.hostname, 'A', '192.0.2.10');
  expect(await verify(domain)).toMatchObject({ state: LIVE, problem: '' });
  dns.set(domain.hostname, 'A', '8.8.8.8');
  expect(await verify(domain)).toMatchObject({ state: FAILING, problem: expect.stringContaining('8.8.8.8') });
  dns.set(domain.hostname, 'A', '192.0.2.10');
  expect(await verify(domain)).toMatchObject({ state: LIVE });
  expect((await domains.listDomains({})).domains).toMatchObject([{ id: domain.id, state: LIVE, problem: '' }]);
});

test('`domain.live` is emitted once, however often and concurrently the domain is verified', async () => {
  const domain = await add();
  publishProof(domain);
  pointAtPlatform(domain);
  const results = await Promise.all(Array.from({ length: 8 }, () => verify(domain)));
  expect(results.some(({ state }) => state === LIVE)).toBe(true);
  expect(await verify(domain)).toMatchObject({ state: LIVE });
  dns.set(domain.hostname, 'CNAME');
  await verify(domain);
  pointAtPlatform(domain);
  expect(await verify(domain)).toMatchObject({ state: LIVE });
  // Verified, live, failing and live again.
  const routes = Array(4).fill('signpost.routes.v1');
  expect((await outbox(domain)).toSorted()).toEqual(['domain.live', ...routes].toSorted());
});

test('the audit log has every change with its actor, and no calls that changed nothing', async () => {
  const domain = await add();
  await verify(domain);
  publishProof(domain);
  pointAtPlatform(domain);
  await verify(domain);
  await verify(domain);
  await domains.removeDomain({ id: domain.id });
  expect(await audit(domain)).toEqual(
    ['AddDomain', 'VerifyDomain', 'VerifyDomain', 'RemoveDomain'].map((action) => `anna@example.com ${action}`),
  );
});

test('resolvers that do not answer change nothing', async () => {
  const domain = await addLive();
  dns.mode = 'broken';
  onTestFinished(() => {
    dns.mode = 'answering';
  });
  expect(await refusal(domains.verifyDomain({ id: domain.id }))).toEqual({
    reason: 'RESOLVERS_UNAVAILABLE',
    message: `The DNS resolvers did not answer for ${domain.hostname}; try again.`,
  });
  expect((await domains.listDomains({})).domains).toMatchObject([{ state: LIVE, problem: '' }]);
});

test('an invalid hostname is rejected with a sentence', async () => {
  expect(await refusal(domains.addDomain({ hostname: '192.0.2.1' }))).toEqual({
    reason: 'INVALID_FIELD',
    message: 'hostname: must be a name, not an IP address.',
  });
  expect(await refusal(domains.addDomain({ hostname: 'SIGN.example' }))).toEqual({
    reason: 'INVALID_FIELD',
    message: 'hostname: sign.example is the platform itself.',
  });
  expect(await refusal(domains.addDomain({ hostname: 'x'.repeat(300) }))).toMatchObject({ reason: 'INVALID_FIELD' });
  expect((await domains.listDomains({})).domains).toEqual([]);
});

test('an account has a hostname once, whatever its spelling', async () => {
  for (const { hostname } of [await add(), await addLive()]) {
    expect(await refusal(domains.addDomain({ hostname: `${hostname.toUpperCase()}.` }))).toEqual({
      reason: 'ALREADY_EXISTS',
      message: `${hostname} is already a domain of this account.`,
    });
  }
});

test('an account that adds a hostname without proof does not keep out the owner who verifies it', async () => {
  const unverified = await add();
  const { accountId } = await signpost.createAccount();
  const other = clientFor(accountId);
  const owner = await addLive(other, unverified.hostname);
  expect(owner).toMatchObject({ state: LIVE });

  // With both records present, it stays with the account that verified it first.
  dns.set(owner.txtName, 'TXT', owner.txtValue, unverified.txtValue);
  const problem = 'Another account has verified this hostname and must remove it first.';
  expect(await verify(unverified)).toMatchObject({ state: PENDING, problem });
  const { accountId: third } = await signpost.createAccount();
  expect(await refusal(clientFor(third).addDomain({ hostname: owner.hostname }))).toEqual({
    reason: 'ALREADY_EXISTS',
    message: `Another account has verified ${owner.hostname} and must remove it first.`,
  });

  await other.removeDomain({ id: owner.id });
  expect(await verify(unverified)).toMatchObject({ state: LIVE });
});

test('of two accounts that verify a hostname concurrently, one succeeds', async () => {
  const first = await add();
  const { accountId } = await signpost.createAccount();
  const other = clientFor(accountId);
  const second = await add(other, first.hostname);
  dns.set(first.txtName, 'TXT', first.txtValue, second.txtValue);
  const outcomes = await Promise.all([verify(first), verify(second, other)]);
  expect(outcomes.map(({ state }) => state).toSorted()).toEqual([PENDING, VERIFIED]);
});

test('calls of one account have ten look-ups and four connections at a time, and others need not wait for them', async () => {
  const owned = await Promise.all(Array.from({ length: 12 }, () => add()));
  const { accountId } = await signpost.createAccount();
  const other = await add(clientFor(accountId));
  const queried = new Set<string>();
  dns.onQuery = (name) => queried.add(name);
  dns.mode = 'silent';
  onTestFinished(() => {
    dns.onQuery = () => undefined;
    dns.mode = 'answering';
  });
  const locking = await pool.connect();
  onTestFinished(() => locking.release());
  await locking.query('begin');
  await locking.query('select from domains where hostname = any($1) for update', [
    owned.map(({ hostname }) => hostname),
  ]);
  // On a busy machine the turn of some comes too late.
  const verifying = Promise.allSettled(owned.map((domain) => verify(domain)));
  await expect.poll(() => queried.size).toBe(10);
  const verifyingOther = verify(other, clientFor(accountId));
  await expect.poll(() => queried.has(other.txtName)).toBe(true);
  expect(queried.size).toBe(11);
  dns.mode = 'answering';
  await verifyingOther;
  await expect.poll(() => queried.size).toBe(13);
  const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
  await expect.poll(async () => (await pool.query(waiting)).rowCount).toBe(4);
  await locking.query('rollback');
  await verifying;
});

test('an account that removes a domain it has not verified, or is closed, leaves the owner’s route as it is', async () => {
  const [{ accountId: removing }, { accountId: closed }] = [
    await signpost.createAccount(),
    await signpost.createAccount(),
  ];
  const hostname = newHostname();
  const { id } = await add(clientFor(removing), hostname);
  await add(clientFor(closed), hostname);
  const owned = await addLive(domains, hostname);
  const published = await outbox(owned);
  await clientFor(removing).removeDomain({ id });
  await internal(signpost, AccountsService, closed).closeAccount({});
  expect((await clientFor(removing).listDomains({})).domains).toEqual([]);
  expect(await outbox(owned)).toEqual(published);
});

test('an account sees, verifies and removes its own domains only, sorted by hostname', async () => {
  const [b, a] = [await add(domains, 'b.example.net'), await add(domains, 'a.example.net')];
  expect((await domains.listDomains({})).domains.map(({ id }) => id)).toEqual([a.id, b.id]);
  const { accountId } = await signpost.createAccount();
  const other = clientFor(accountId);
  expect((await other.listDomains({})).domains).toEqual([]);
  const notFound = { reason: 'NOT_FOUND', message: 'There is no such domain on this account.' };
  for (const id of [a.id, 'domain_none', '']) {
    expect(await refusal(other.verifyDomain({ id }))).toEqual(notFound);
    expect(await refusal(other.removeDomain({ id }))).toEqual(notFound);
  }
  expect((await domains.removeDomain({ id: a.id })).domain).toMatchObject({ id: a.id });
  expect((await domains.listDomains({})).domains.map(({ id }) => id)).toEqual([b.id]);
});

test('a proxy can check that a host is live, and learns nothing about any other', async () => {
  const domain = await addLive();
  expect((await domains.checkHost({ hostname: `${domain.hostname.toUpperCase()}.` })).domain?.id).toBe(domain.id);
  dns.set(domain.hostname, 'CNAME');
  await verify(domain);
  for (const hostname of [domain.hostname, (await add()).hostname, 'sign.example', 'a\0b']) {
    expect(await refusal(domains.checkHost({ hostname }))).toMatchObject({ reason: 'NOT_FOUND' });
  }
});

test('only the named hostnames are republished: one that does not resolve as failing, a removed one as removed', async () => {
  const [live, other, removed] = [await addLive(), await addLive(), await addLive()];
  const verified = await add();
  publishProof(verified);
  await verify(verified);
  await domains.removeDomain({ id: removed.id });
  const { accountId } = await signpost.createAccount();
  await add(clientFor(accountId), removed.hostname);
  const unverified = await add();
  const routesOf = async (domain: Domain) => (await outbox(domain)).filter((topic) => topic === ROUTES.name).length;
  const before = await Promise.all([live, other, removed, unverified, verified].map(routesOf));
  const database = await openDatabase(signpost.databaseUrl, 2, entities);
  onTestFinished(() => database.close());
  const hostnames = [live, removed, unverified, verified].map(({ hostname }) => hostname);
  expect(await republishHosts(database, [...hostnames, 'unknown.example'])).toBe(3);
  const after = await Promise.all([live, other, removed, unverified, verified].map(routesOf));
  expect(after.map((count, index) => count - (before[index] ?? 0))).toEqual([1, 0, 1, 0, 1]);
  for (const [{ hostname }, expected] of [
    [live, { failing: false, removed: false }],
    [verified, { failing: true, removed: false }],
    [removed, { removed: true }],
  ] as const) {
    const { rows } = await pool.query('select value from outbox where key = $1 order by id desc limit 1', [
      `host:${hostname}`,
    ]);
    expect(fromBinary(RouteSchema, rows[0].value).entry.value).toMatchObject({ hostname, ...expected });
  }
});
