import { request as httpRequest, type IncomingMessage } from 'node:http';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { decodeId } from '../../common/contract/ids.ts';
import { AccountsService, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { DomainsService } from '../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { TargetsService } from '../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { WebhooksService } from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { type Account, contract } from './client.ts';
import { internal } from './internal.ts';

const api = contract({ gateways: 2, cores: 2 });

const EVENTUALLY = { interval: 50 };

let pool: pg.Pool;
beforeAll(() => {
  pool = new pg.Pool({ connectionString: api.signpost.databaseUrl });
});
afterAll(() => pool.end());

const accounts = (account: Account) => internal(api.signpost, AccountsService, account.id);
const reasonOf = (call: Promise<unknown>) =>
  call.then(
    () => 'succeeded',
    (error: unknown) => readFailure(error).reason,
  );

/** Through every gateway. */
const scans = (shortCode: string) =>
  Promise.all(
    api.signpost.gateways.map(async ({ url }) => (await fetch(`${url}/r/${shortCode}`, { redirect: 'manual' })).status),
  );
/** The same on a custom domain: `fetch` can't set `Host`. */
const scansOn = (host: string, shortCode: string) =>
  Promise.all(
    api.signpost.gateways.map(async ({ url }) => {
      const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
      const answered = (response: IncomingMessage) => resolve(response.resume().statusCode);
      httpRequest(`${url}/r/${shortCode}`, { headers: { host } }, answered).once('error', reject).end();
      return promise;
    }),
  );
const statuses = (apiKey: string) =>
  Promise.all(
    api.signpost.gateways.map(
      async ({ url }) => (await fetch(`${url}/api/v1/tags`, { headers: { authorization: `Bearer ${apiKey}` } })).status,
    ),
  );

test('a key that is replaced or revoked is invalid at once on every gateway and core', async () => {
  const account = await api.account();
  expect(await statuses(account.apiKey)).toEqual([200, 200]);
  const { apiKey } = await accounts(account).rotateKey({});
  expect(await statuses(account.apiKey)).toEqual([401, 401]);
  expect(await statuses(apiKey)).toEqual([200, 200]);
  await accounts(account).revokeKey({});
  expect(await statuses(apiKey)).toEqual([401, 401]);
});

/** Creates an account with data in every table of accounts. */
async function accountWithData() {
  const account = await api.account();
  const dynamic = await account.create({ name: 'a', folder: 'Berlin', tags: ['x', 'y'], campaign_type: 'print' });
  await account.call('PATCH', `/qr-codes/${dynamic.id}`, { json: { target_url: 'https://example.com/new' } });
  const deleted = await account.create({ folder: 'Berlin' });
  await account.call('DELETE', `/qr-codes/${deleted.id}`);
  const codes = internal(api.signpost, CodesService, account.id);
  const { code: page } = await codes.createLandingPageCode({ landingPage: { title: 'Menu' } });
  const { code: wifi } = await codes.createStaticCode({ content: { case: 'payload', value: 'WIFI' } });
  await accounts(account).addMember({ email: 'anna@example.com', role: Role.OWNER });
  await accounts(account).createSignInLink({ email: 'anna@example.com' });
  const hostname = `${uuid(account)}.example`;
  const { domain } = await internal(api.signpost, DomainsService, account.id).addDomain({ hostname });
  // As if DNS had verified it.
  await pool.query(
    `with verified as (update domains set state = 'verified' where account_id = $1 returning hostname, account_id)
     insert into verified_hostnames select * from verified on conflict (hostname) do update set account_id = $1`,
    [uuid(account)],
  );
  const branded = (await account.create({ domain_id: domain?.id })).short_code;
  const webhooks = internal(api.signpost, WebhooksService, account.id);
  const { endpoint } = await webhooks.createEndpoint({ url: 'https://hooks.example.com/in', events: ['qr.created'] });
  await webhooks.sendTestEvent({ id: endpoint?.id ?? '' });
  await pool.query(`insert into webhook_attempt_budgets values ($1, 'furnished.example', now() + interval '1 day')`, [
    uuid(account),
  ]);
  const row = { code: { case: 'id', value: dynamic.id }, targetUrl: 'https://example.com/newer' } as const;
  const targets = internal(api.signpost, TargetsService, account.id);
  await targets.changeTargets({ rows: [row], note: 'All of them.' });
  await targets.setTarget({ id: dynamic.id, policy: { passQuery: true } });
  await account.call('POST', '/batches', { json: { rows: [{ target_url: 'nowhere' }] } });
  await account.call('POST', '/qr-codes', { json: {}, headers: { 'idempotency-key': 'x' } });
  const shortCodes = [dynamic.short_code, page?.shortCode ?? '', wifi?.shortCode ?? '', deleted.short_code];
  await expect
    .poll(() => Promise.all(shortCodes.map(scans)), EVENTUALLY)
    .toEqual([
      [302, 302],
      [200, 200],
      [404, 404],
      [410, 410],
    ]);
  await expect.poll(() => count('scan_totals', account), EVENTUALLY).toBe(2);
  // Gateways may have answered the scans so far by the target without a policy.
  const countAfterScan = async () => {
    await scans(dynamic.short_code);
    return count('scan_targets', account);
  };
  await expect.poll(countAfterScan, EVENTUALLY).toBeGreaterThan(0);
  return { account, shortCodes, branded, hostname };
}

const uuid = ({ id }: Account) => decodeId('acct', id);

async function count(table: string, account: Account): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    `select count(*)::integer as count from ${table} where account_id = $1`,
    [uuid(account)],
  );
  return rows[0]?.count ?? 0;
}

/** The tables that have rows of an account. `scan_increments` has them for seconds only. */
async function filledTables(account: Account): Promise<string[]> {
  const tables = await tablesOfAccounts();
  const counts = await Promise.all(tables.map(async (name) => [name, await count(name, account)] as const));
  return counts.flatMap(([name, rows]) => (rows > 0 && name !== 'scan_increments' ? name : []));
}

async function tablesOfAccounts(): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'account_id'
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition order by 1`,
  );
  return rows.map(({ name }) => name);
}

/** What may remain of an account whose data is deleted: tables, and their columns without customer data. */
const REMAINING: Readonly<Record<string, readonly string[]>> = {
  accounts: [
    'id',
    'plan',
    'monthly_quota',
    'code_limit',
    'batch_limit',
    'feature_api',
    'feature_bulk',
    'feature_images',
    'created_at',
    'closed_at',
    'delete_data',
    'clear_at',
    'clearing_until',
    'clearing_by',
  ],
  audit_entries: ['id', 'account_id', 'at', 'actor', 'action', 'subject'],
  code_counts: ['account_id', 'live', 'listed'],
  codes: [
    'account_id',
    'id',
    'type',
    'short_code',
    'hostname',
    'target_version',
    'paused',
    'version',
    'created_at',
    'updated_at',
    'deleted_at',
  ],
  meters: ['account_id', 'month', 'used', 'admissions', 'turn'],
  scan_deletions: ['account_id', 'asked_at', 'done_at'],
  verified_hostnames: ['account_id', 'hostname'],
};

/** A value of each type that has to be erased, which no column has by default. */
const WRITTEN: Readonly<Record<string, string>> = {
  jsonb: '{"title":"written"}',
  text: 'written',
  uuid: '42424242-4242-4242-8242-424242424242',
};

interface CustomerColumn {
  readonly name: string;
  readonly type: string;
  readonly nullable: boolean;
  readonly refers: boolean;
}

/** The other columns of those tables, whichever the schema has. */
async function customerColumns(table: string): Promise<CustomerColumn[]> {
  const { rows } = await pool.query<CustomerColumn>(
    `select attname as name, format_type(atttypid, null) as type, not attnotnull as nullable,
       exists (select from pg_constraint where conrelid = attrelid and contype = 'f' and attnum = any(conkey)) as refers
     from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped`,
    [table],
  );
  return rows.filter(({ name }) => !REMAINING[table]?.includes(name));
}

const ownerColumn = (table: string) => (table === 'accounts' ? 'id' : 'account_id');

/** Writes a value to each column that has to be erased. Those that refer to other rows have one by the calls above. */
async function fill(account: Account): Promise<void> {
  for (const table of Object.keys(REMAINING)) {
    for (const { name, type } of (await customerColumns(table)).filter(({ refers }) => !refers)) {
      const value = WRITTEN[type];
      if (value === undefined) throw new Error(`Add a value of type ${type} for ${table}.${name}.`);
      await pool.query(`update ${table} set ${name} = $2 where ${ownerColumn(table)} = $1`, [uuid(account), value]);
    }
  }
}

/** The columns that are not erased: not null, or as `fill` wrote them where they can't be null. */
async function unerased(account: Account): Promise<string[]> {
  const found: string[] = [];
  for (const table of Object.keys(REMAINING)) {
    for (const { name, type, nullable } of await customerColumns(table)) {
      const { rows } = await pool.query<{ value: unknown }>(
        `select ${name}::text as value from ${table} where ${ownerColumn(table)} = $1 and ${name} is not null`,
        [uuid(account)],
      );
      if (rows.some(({ value }) => nullable || value === WRITTEN[type])) found.push(`${table}.${name}`);
    }
  }
  return found;
}

describe('a closed account', () => {
  test('has no key and no resolving code, and no caller can act for it', async () => {
    const { account, shortCodes } = await accountWithData();
    const { account: closed } = await accounts(account).closeAccount({});
    expect(closed?.closedAt).toBeDefined();
    expect(await statuses(account.apiKey)).toEqual([401, 401]);
    await expect
      .poll(() => Promise.all(shortCodes.map(scans)), EVENTUALLY)
      .toEqual(Array.from({ length: 4 }, () => [410, 410]));
    expect(await reasonOf(accounts(account).rotateKey({}))).toBe('NOT_FOUND');
    expect(await reasonOf(accounts(account).updateAccount({ name: 'x' }))).toBe('NOT_FOUND');
    expect(await reasonOf(internal(api.signpost, CodesService, account.id).listCodes({}))).toBe('NOT_FOUND');
    // Its data is kept and can be read.
    expect((await accounts(account).getAccount({})).account).toEqual(closed);
    expect((await accounts(account).listAuditEntries({})).entries[0]).toMatchObject({
      action: 'AccountsService/CloseAccount',
      subject: account.id,
    });
    expect(await count('scans', account)).toBeGreaterThan(0);
    expect(await count('folders', account)).toBe(1);
    expect(await count('domains', account)).toBe(0);
  });

  test('leaves nothing when its data is deleted, now or later, except ids, its audit, its short codes and the hostnames that it verified', async () => {
    const [{ account, shortCodes, branded, hostname }, { account: other, shortCodes: othersCodes }] = await Promise.all(
      [accountWithData(), accountWithData()],
    );
    // Recorders move rows of scan_increments to scan_rollups every ten seconds.
    await expect.poll(() => count('scan_rollups', account), EVENTUALLY).toBeGreaterThan(0);
    // Requests are recorded a second after the first of them.
    await expect.poll(() => count('api_requests', account), EVENTUALLY).toBe(7);
    // Every table with data of accounts must have rows before, so that this test sees them deleted; these have them for
    // seconds only, in any case.
    const transient = ['relabelled_codes', 'scan_deletions', 'scan_increments'];
    const filled = (await tablesOfAccounts()).filter((name) => !transient.includes(name));
    expect(await filledTables(account)).toEqual(filled);
    await expect.poll(() => filledTables(other), EVENTUALLY).toEqual(filled);
    await fill(account);
    await fill(other);
    const othersColumns = await unerased(other);
    await accounts(account).closeAccount({});
    const { account: closed } = await accounts(account).closeAccount({ deleteData: true });
    expect(closed?.name).toBe('(deleted)');
    expect(await count('scan_increments', account)).toBe(0);
    expect(['accounts', ...(await filledTables(account))]).toEqual(Object.keys(REMAINING));
    expect(await unerased(account)).toEqual([]);
    expect(await filledTables(other)).toEqual(filled);
    expect(await unerased(other)).toEqual(othersColumns);
    expect(await Promise.all(othersCodes.slice(0, 2).map(scans))).toEqual([
      [302, 302],
      [200, 200],
    ]);
    const { rows: codes } = await pool.query(
      'select distinct deleted_at is null as live from codes where account_id = $1',
      [uuid(account)],
    );
    expect(codes).toEqual([{ live: false }]);
    const gone = Array.from({ length: 4 }, () => [410, 410]);
    await expect.poll(() => Promise.all(shortCodes.map(scans)), EVENTUALLY).toEqual(gone);
    // Its own codes only are answered on its hostname.
    const ofOther = () => scansOn(hostname, othersCodes[0] ?? '');
    await expect.poll(ofOther, EVENTUALLY).toEqual([404, 404]);
    await expect.poll(() => scansOn(hostname, branded), EVENTUALLY).toEqual([410, 410]);
    const { rows: printed } = await pool.query('select hostname from codes where short_code = $1', [branded]);
    expect(printed).toEqual([{ hostname }]);
    // The compacted topic keeps the latest record of a code permanently.
    const { rows: routes } = await pool.query<{ value: Buffer }>(
      `select distinct on (key) value from log_records
       where topic = 'signpost.routes.v1' and key = any($1) order by key, "offset" desc`,
      [shortCodes.map((code) => `code:${code}`)],
    );
    expect(routes).toHaveLength(4);
    for (const { value } of routes) expect(value.toString()).not.toMatch(/example\.com|written/);
  });

  test('is cleared of late writes too', async () => {
    const { account, shortCodes } = await accountWithData();
    await accounts(account).closeAccount({ deleteData: true });
    // As if a running call had committed afterwards, and a minute had passed.
    await pool.query(
      `update codes set deleted_at = null, target_url = 'https://example.com', version = version + 1
       where account_id = $1`,
      [uuid(account)],
    );
    await pool.query(`insert into folders (id, account_id, name) values (gen_random_uuid(), $1, 'late')`, [
      uuid(account),
    ]);
    await pool.query('update accounts set clear_at = now() where id = $1', [uuid(account)]);
    // A core checks at start and every minute.
    for (const core of api.signpost.cores) await core.restart();
    await expect.poll(() => count('folders', account), EVENTUALLY).toBe(0);
    const { rows } = await pool.query<{ left: number }>(
      'select count(*)::integer as left from codes where account_id = $1 and (deleted_at is null or target_url is not null)',
      [uuid(account)],
    );
    expect(rows[0]?.left).toBe(0);
    expect(await scans(shortCodes[0] ?? '')).toEqual([410, 410]);
  });
});
