import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { decodeId } from '../../common/contract/ids.ts';
import { type Domain, DomainState, DomainsService } from '../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { internal } from '../../test/contract/internal.ts';
import { type Dns, startDns } from '../../test/harness/dns.ts';
import { type Signpost, startSignpost } from '../../test/harness/processes.ts';
import { notifying } from '../db/notifications.ts';

const { PENDING, VERIFIED, LIVE, FAILING } = DomainState;
const EVENTUALLY = { interval: 50 };

let dns: Dns;
let signpost: Signpost;
let pool: pg.Pool;
let account: string;

beforeAll(async () => {
  dns = await startDns();
  const env = { PUBLIC_URL: 'https://sign.example', DNS_RESOLVERS: dns.address };
  signpost = await startSignpost({ gateways: 0, cores: 2, env });
  pool = new pg.Pool({ connectionString: signpost.databaseUrl });
});
afterAll(() => pool.end());
beforeEach(async () => {
  dns.mode = 'answering';
  ({ accountId: account } = await signpost.createAccount());
});

const client = () => internal(signpost, DomainsService, account);

let hostnames = 0;

async function add(): Promise<Domain> {
  const { domain } = await client().addDomain({ hostname: `menu${hostnames++}.example` });
  if (!domain) throw new Error('the answer has no domain');
  return domain;
}

/** Makes domains due for a check now. */
async function makeDue(...domains: Domain[]): Promise<void> {
  const ids = domains.map(({ id }) => decodeId('domain', id));
  await pool.query(
    `with due as (update domains set check_at = now() where id = any($1::uuid[])) select ${notifying('domains')}`,
    [ids],
  );
}

const states = async () => (await client().listDomains({})).domains.map(({ state }) => state);

async function events(domain: Domain): Promise<string[]> {
  const { rows } = await pool.query<{ type: string }>(
    `select headers->>'ce_type' as type from log_records where topic = 'signpost.events.v1' and key = $1`,
    [domain.id],
  );
  return rows.map(({ type }) => type);
}

test('background checks make a domain live, failing when it points elsewhere, and live again, and record it in the audit log', async () => {
  const domain = await add();
  const expectState = (state: DomainState) =>
    // Made due before each poll: a running check sets the next time after its state has become visible.
    expect.poll(() => makeDue(domain).then(states), { ...EVENTUALLY, interval: 1_000 }).toEqual([state]);
  await expect.poll(async () => (await client().listDomains({})).domains[0]?.problem, EVENTUALLY).toContain('no TXT');
  dns.set(domain.txtName, 'TXT', domain.txtValue);
  await expectState(VERIFIED);
  dns.set(domain.hostname, 'CNAME', 'sign.example');
  await expectState(LIVE);
  dns.set(domain.hostname, 'CNAME', 'elsewhere.example');
  await expectState(FAILING);
  dns.set(domain.hostname, 'CNAME', 'sign.example');
  await expectState(LIVE);
  const { rows } = await pool.query<{ entry: string }>(
    `select actor || ': ' || action as entry from audit_entries where subject = $1 order by id`,
    [domain.id],
  );
  expect(rows.slice(1).map(({ entry }) => entry)).toEqual(
    ['verified', 'live', 'failing', 'live'].map((state) => `signpost: domain became ${state}`),
  );
});

test('two cores and concurrent callers make every domain live and emit one event for each', async () => {
  const domains = await Promise.all(Array.from({ length: 50 }, add));
  for (const { hostname, txtName, txtValue } of domains) {
    dns.set(txtName, 'TXT', txtValue);
    dns.set(hostname, 'CNAME', 'sign.example');
  }
  const verifying = domains.slice(0, 25).map(({ id }) => client().verifyDomain({ id }));
  await makeDue(...domains);
  await Promise.all(verifying);
  const distinctStates = async () => {
    // A running check that began before the records existed sets a later time.
    await makeDue(...domains);
    return new Set(await states());
  };
  await expect.poll(distinctStates, { ...EVENTUALLY, interval: 1_000 }).toEqual(new Set([LIVE]));
  await makeDue(...domains);
  for (const domain of domains) {
    await expect.poll(() => events(domain), EVENTUALLY).toEqual(['domain.live']);
  }
});

test('while the resolvers are unavailable, domains keep their states and stay due', async () => {
  const domain = await add();
  await expect.poll(async () => (await client().listDomains({})).domains[0]?.problem, EVENTUALLY).toContain('no TXT');
  dns.set(domain.txtName, 'TXT', domain.txtValue);
  dns.mode = 'broken';
  await makeDue(domain);
  const logs = async () => (await signpost.cores[0]?.log()) + ((await signpost.cores[1]?.log()) ?? '');
  await expect.poll(logs, EVENTUALLY).toContain(`"domain":"${domain.id}"`);
  for (let turn = 0; turn < 4; turn++) {
    await makeDue(domain);
    const checked = async () =>
      (await pool.query('select from domains where id = $1 and check_at > now()', [decodeId('domain', domain.id)]))
        .rowCount;
    await expect.poll(checked, EVENTUALLY).toBe(1);
  }
  expect(await states()).toEqual([PENDING]);
  // One line of each core, though five look-ups failed.
  const lines = (await logs()).split('the DNS records of a domain could not be looked up').length - 1;
  expect(lines).toBeLessThanOrEqual(signpost.cores.length);
  const { rows } = await pool.query<{ soon: boolean }>(
    `select check_at <= now() + interval '1 minute' as soon from domains where id = $1`,
    [decodeId('domain', domain.id)],
  );
  expect(rows).toEqual([{ soon: true }]);
});

test.each([
  [`state_since = now() - interval '10 hours'`, '01:00:00'],
  [`state_since = now() - interval '1 year'`, '06:00:00'],
  [`state = 'live', state_since = now() - interval '1 year'`, '00:10:00'],
])('a domain whose name servers do not answer is due less often, the longer it waits: %s', async (state, delay) => {
  const domain = await add();
  await expect.poll(async () => (await client().listDomains({})).domains[0]?.problem, EVENTUALLY).toContain('no TXT');
  dns.mode = 'broken';
  const id = decodeId('domain', domain.id);
  await pool.query(`update domains set ${state}, check_at = now() where id = $1`, [id]);
  await makeDue(domain);
  const wait = async () => {
    const { rows } = await pool.query<{ wait: string }>(
      `select date_trunc('minute', check_at - now() + interval '59 seconds')::text as wait from domains where id = $1`,
      [id],
    );
    return rows[0]?.wait;
  };
  await expect.poll(wait, EVENTUALLY).toBe(delay);
});

test('if the result for a domain can’t be stored, those for others are, and it is checked again within a minute', async () => {
  const domains = [await add(), await add(), await add()];
  const [, broken] = domains;
  const problems = async () => (await client().listDomains({})).domains.map(({ problem }) => problem);
  await expect.poll(problems, EVENTUALLY).toEqual(domains.map(() => expect.stringContaining('no TXT')));
  onTestFinished(async () => void (await pool.query('drop function fail_change cascade')));
  await pool.query(
    `create function fail_change() returns trigger language plpgsql as $$ begin raise exception 'broken'; end $$`,
  );
  await pool.query(
    `create trigger fail_change before update of state on domains for each row
     when (old.hostname = '${broken?.hostname}') execute function fail_change()`,
  );
  await pool.query(`update domains set state_since = now() - interval '1 year' where account_id = $1`, [
    decodeId('acct', account),
  ]);
  for (const { txtName, txtValue } of domains) dns.set(txtName, 'TXT', txtValue);
  await makeDue(...domains);
  await expect.poll(async () => (await states()).toSorted(), EVENTUALLY).toEqual([PENDING, VERIFIED, VERIFIED]);
  const { rows } = await pool.query<{ soon: boolean }>(
    `select check_at <= now() + interval '1 minute' as soon from domains where hostname = $1`,
    [broken?.hostname],
  );
  expect(rows).toEqual([{ soon: true }]);
});

test('SIGTERM during a look-up stops the core in order, without waiting for resolvers', async () => {
  const domain = await add();
  dns.mode = 'silent';
  await makeDue(domain);
  const [, second] = signpost.cores;
  onTestFinished(() => second?.restart());
  await expect
    .poll(async () => {
      const { rows } = await pool.query('select from domains where id = $1 and check_at > now()', [
        decodeId('domain', domain.id),
      ]);
      return rows.length;
    }, EVENTUALLY)
    .toBe(1);
  await second?.kill('SIGTERM');
  expect(await second?.log()).toContain('the core is stopping');
});
