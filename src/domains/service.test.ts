import type { Client } from '@connectrpc/connect';
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { type Domain, DomainState, DomainsService } from '../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { internal } from '../../test/contract/internal.ts';
import { type Dns, startDns } from '../../test/harness/dns.ts';
import { type Signpost, startSignpost } from '../../test/harness/processes.ts';

const { PENDING, VERIFIED, LIVE, FAILING } = DomainState;

let dns: Dns;
let signpost: Signpost;
let pool: pg.Pool;
let account: string;
let domains: Client<typeof DomainsService>;

beforeAll(async () => {
  dns = await startDns();
  signpost = await startSignpost({
    env: {
      // What happens is what the test calls for: the background has tests of its own.
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

let made = 0;
const newHostname = () => `menu${made++}.example.com`;

async function add(by = domains, hostname = newHostname()): Promise<Domain> {
  return there((await by.addDomain({ hostname })).domain);
}

async function verify({ id }: Domain, by = domains): Promise<Domain> {
  return there((await by.verifyDomain({ id })).domain);
}

function there(domain: Domain | undefined): Domain {
  if (!domain) throw new Error('the answer has no domain');
  return domain;
}

const prove = ({ txtName, txtValue }: Domain) => dns.set(txtName, 'TXT', txtValue);
const point = ({ hostname }: Domain) => dns.set(hostname, 'CNAME', 'sign.example');

async function live(by = domains, hostname = newHostname()): Promise<Domain> {
  const domain = await add(by, hostname);
  prove(domain);
  point(domain);
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

/** What waits in the outbox about a domain, by topic and type. */
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

test('a domain goes from pending by verified to live, as DNS has it', async () => {
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
  prove(domain);
  expect(await verify(domain)).toMatchObject({ state: VERIFIED, problem: expect.stringContaining('no address') });
  // Once proven, the record is needed no more.
  dns.set(domain.txtName, 'TXT');
  expect(await verify(domain)).toMatchObject({ state: VERIFIED });
  dns.set(domain.hostname, 'A', '192.0.2.10');
  expect(await verify(domain)).toMatchObject({ state: LIVE, problem: '' });
  dns.set(domain.hostname, 'A', '192.0.2.99');
  expect(await verify(domain)).toMatchObject({ state: FAILING, problem: expect.stringContaining('192.0.2.99') });
  dns.set(domain.hostname, 'A', '192.0.2.10');
  expect(await verify(domain)).toMatchObject({ state: LIVE });
  expect((await domains.listDomains({})).domains).toMatchObject([{ id: domain.id, state: LIVE, problem: '' }]);
});

test('`domain.live` is emitted once, however often and by however many it is verified', async () => {
  const domain = await add();
  prove(domain);
  point(domain);
  const seen = await Promise.all(Array.from({ length: 8 }, () => verify(domain)));
  expect(seen.some(({ state }) => state === LIVE)).toBe(true);
  expect(await verify(domain)).toMatchObject({ state: LIVE });
  dns.set(domain.hostname, 'CNAME');
  await verify(domain);
  point(domain);
  expect(await verify(domain)).toMatchObject({ state: LIVE });
  // Verified, live, failing and live again.
  const routes = Array(4).fill('signpost.routes.v1');
  expect((await outbox(domain)).toSorted()).toEqual(['domain.live', ...routes].toSorted());
});

test('who did what is in the audit, and calls that changed nothing are not', async () => {
  const domain = await add();
  await verify(domain);
  prove(domain);
  point(domain);
  await verify(domain);
  await verify(domain);
  await domains.removeDomain({ id: domain.id });
  expect(await audit(domain)).toEqual(
    ['AddDomain', 'VerifyDomain', 'VerifyDomain', 'RemoveDomain'].map((action) => `anna@example.com ${action}`),
  );
});

test('resolvers that do not answer change nothing', async () => {
  const domain = await live();
  dns.mode = 'broken';
  onTestFinished(() => {
    dns.mode = 'answering';
  });
  expect(await refusal(domains.verifyDomain({ id: domain.id }))).toEqual({
    reason: 'UNAVAILABLE',
    message: `The resolvers say nothing about ${domain.hostname} at the moment; try again.`,
  });
  expect((await domains.listDomains({})).domains).toMatchObject([{ state: LIVE, problem: '' }]);
});

test('what is no hostname is refused with a sentence', async () => {
  expect(await refusal(domains.addDomain({ hostname: '192.0.2.1' }))).toEqual({
    reason: 'INVALID_FIELD',
    message: 'hostname: must be a name; an IP address is none.',
  });
  expect(await refusal(domains.addDomain({ hostname: 'SIGN.example' }))).toEqual({
    reason: 'INVALID_FIELD',
    message: 'hostname: sign.example is the platform itself.',
  });
  expect(await refusal(domains.addDomain({ hostname: 'x'.repeat(300) }))).toMatchObject({ reason: 'INVALID_FIELD' });
  expect((await domains.listDomains({})).domains).toEqual([]);
});

test('a hostname is on an account once, whatever its spelling', async () => {
  const { hostname } = await add();
  expect(await refusal(domains.addDomain({ hostname: `${hostname.toUpperCase()}.` }))).toEqual({
    reason: 'ALREADY_EXISTS',
    message: `${hostname} is a domain of this account already.`,
  });
});

test('nobody keeps an owner out by adding a hostname first: who proves it has it', async () => {
  const unverified = await add();
  const { accountId } = await signpost.createAccount();
  const other = clientFor(accountId);
  const owner = await live(other, unverified.hostname);
  expect(owner).toMatchObject({ state: LIVE });

  // Both records are there, and still it is the first one's.
  dns.set(owner.txtName, 'TXT', owner.txtValue, unverified.txtValue);
  const problem = 'Another account has proven this hostname, and has to remove it first.';
  expect(await verify(unverified)).toMatchObject({ state: PENDING, problem });
  const { accountId: third } = await signpost.createAccount();
  expect(await refusal(clientFor(third).addDomain({ hostname: owner.hostname }))).toEqual({
    reason: 'ALREADY_EXISTS',
    message: `Another account has proven ${owner.hostname}, and has to remove it first.`,
  });

  await other.removeDomain({ id: owner.id });
  expect(await verify(unverified)).toMatchObject({ state: LIVE });
});

test('of two accounts that prove a hostname at once, one has it', async () => {
  const first = await add();
  const { accountId } = await signpost.createAccount();
  const other = clientFor(accountId);
  const second = await add(other, first.hostname);
  dns.set(first.txtName, 'TXT', first.txtValue, second.txtValue);
  const outcomes = await Promise.all([verify(first), verify(second, other)]);
  expect(outcomes.map(({ state }) => state).toSorted()).toEqual([PENDING, VERIFIED]);
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

test('a proxy learns that a host is live, and nothing of any other', async () => {
  const domain = await live();
  expect((await domains.checkHost({ hostname: `${domain.hostname.toUpperCase()}.` })).domain?.id).toBe(domain.id);
  dns.set(domain.hostname, 'CNAME');
  await verify(domain);
  for (const hostname of [domain.hostname, (await add()).hostname, 'sign.example', 'a\0b']) {
    expect(await refusal(domains.checkHost({ hostname }))).toMatchObject({ reason: 'NOT_FOUND' });
  }
});
