import type { DescService } from '@bufbuild/protobuf';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { decodeId } from '../../common/contract/ids.ts';
import { AccountsService, Plan, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { CodesService } from '../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { internal } from '../../test/contract/internal.ts';
import { type Signpost, startSignpost } from '../../test/harness/processes.ts';

let signpost: Signpost;
let pool: pg.Pool;
beforeAll(async () => {
  // Without a relay, events stay in the outbox.
  signpost = await startSignpost({ env: { ROLES: 'rpc' } });
  pool = new pg.Pool({ connectionString: signpost.databaseUrl });
});
afterAll(() => pool.end());

async function newAccount(overrides = {}) {
  const { accountId, apiKey } = await signpost.createAccount(overrides);
  return { id: accountId, apiKey, accounts: internal(signpost, AccountsService, accountId) };
}

/** A client of the core as the dashboard's server is one, for a member of an account. */
const asMember = <Service extends DescService>(accountId: string, memberId: string, service: Service) =>
  internal(signpost, service, accountId, memberId);

const reasonOf = (call: Promise<unknown>) =>
  call.then(
    () => 'succeeded',
    (error: unknown) => readFailure(error).reason,
  );

const codes = async (apiKey: string) => {
  const { status, headers } = await fetch(`${signpost.url}/api/v1/qr-codes`, {
    headers: { authorization: `Bearer ${apiKey}` },
  });
  return { status, limit: headers.get('x-ratelimit-limit') };
};

async function events(subject: string) {
  const { rows } = await pool.query<{ type: string; source: string; data: string }>(
    `select headers->>'ce_type' as type, headers->>'ce_source' as source, convert_from(value, 'UTF8') as data
     from outbox where key = $1 and topic = 'signpost.events.v1' order by id`,
    [subject],
  );
  return rows.map(({ type, source, data }) => ({ type, source, data: JSON.parse(data) as unknown }));
}

test('an update changes only the fields that are set, and applies to the next call', async () => {
  const { id, apiKey, accounts } = await newAccount({ name: 'Trattoria', overrides: { codeLimit: 5n } });
  expect(await codes(apiKey)).toEqual({ status: 200, limit: '50000' });
  const { account } = await accounts.updateAccount({ plan: Plan.SCALE });
  expect(account).toMatchObject({ id, name: 'Trattoria', plan: Plan.SCALE, overrides: { codeLimit: 5n } });
  expect(await codes(apiKey)).toEqual({ status: 200, limit: '250000' });
  await accounts.updateAccount({ plan: Plan.FREE });
  expect((await codes(apiKey)).status).toBe(403);
  await accounts.updateAccount({ overrides: { api: true, monthlyQuota: 7n, batchLimit: 3 } });
  expect(await codes(apiKey)).toEqual({ status: 200, limit: '7' });
  const read = await accounts.getAccount({});
  expect(read.account?.overrides).toMatchObject({ api: true, monthlyQuota: 7n, batchLimit: 3 });
  expect(read.account?.overrides).not.toHaveProperty('codeLimit', 5n);
  expect(read.usage).toMatchObject({
    monthlyQuota: 7n,
    requestsUsed: 3n,
    codeLimit: 10n,
    codesUsed: 0n,
    batchLimit: 3,
  });
  expect(read.features).toMatchObject({ api: true, bulk: false, images: false });
  await accounts.updateAccount({ name: 'Osteria', overrides: {} });
  expect((await accounts.getAccount({})).account).toMatchObject({ name: 'Osteria', plan: Plan.FREE });
  expect((await codes(apiKey)).status).toBe(403);
});

test('an update with a mask changes the fields in it, and clears overrides that have no value', async () => {
  const { accounts } = await newAccount({ name: 'Trattoria', overrides: { codeLimit: 5n } });
  const unnamed = { name: 'Osteria', plan: Plan.SCALE, updateMask: { paths: ['name'] } };
  const { account } = await accounts.updateAccount(unnamed);
  expect(account).toMatchObject({ name: 'Osteria', plan: Plan.BUSINESS, overrides: { codeLimit: 5n } });
  const cleared = await accounts.updateAccount({ updateMask: { paths: ['overrides'] } });
  expect(cleared.account?.overrides?.codeLimit).toBeUndefined();
  expect(await reasonOf(accounts.updateAccount({ name: 'x', updateMask: { paths: ['plan'] } }))).toBe('INVALID_FIELD');
  expect(await reasonOf(accounts.updateAccount({ name: 'x', updateMask: { paths: ['id'] } }))).toBe('INVALID_FIELD');
});

test('an empty or invalid update changes nothing', async () => {
  const { accounts } = await newAccount({ name: 'Trattoria' });
  const { account } = await accounts.getAccount({});
  expect(await reasonOf(accounts.updateAccount({}))).toBe('NO_FIELDS');
  for (const invalid of [
    { name: '' },
    { name: ' \u00a0' },
    { name: 'x'.repeat(201) },
    { plan: 9 as Plan },
    { overrides: { batchLimit: 25_001 } },
  ]) {
    expect(await reasonOf(accounts.updateAccount({ plan: Plan.SCALE, ...invalid }))).toBe('INVALID_FIELD');
  }
  expect(await reasonOf(accounts.updateAccount({ overrides: { codeLimit: -1n } }))).toBe('INVALID_FIELD');
  expect((await accounts.getAccount({})).account).toEqual(account);
});

test('a member who is admin renames the account, by the rule for new ones, and changes nothing else', async () => {
  const { id, accounts } = await newAccount({ name: 'Trattoria', plan: Plan.SCALE, overrides: { codeLimit: 5n } });
  const { account: before } = await accounts.getAccount({});
  const as = async (role: Role) => {
    const { member } = await accounts.addMember({ email: `${role}@example.com`, role });
    return asMember(id, member?.id ?? '', AccountsService);
  };
  const admin = await as(Role.ADMIN);
  const renamed = { ...before, name: 'Ö'.repeat(200) };
  expect((await admin.renameAccount({ name: renamed.name })).account).toEqual(renamed);
  for (const name of ['', 'x'.repeat(201), '   ', 'a\nb', '\u0007']) {
    expect(await reasonOf(admin.renameAccount({ name }))).toBe('INVALID_FIELD');
    expect(await reasonOf(accounts.createAccount({ name, plan: Plan.FREE }))).toBe('INVALID_FIELD');
  }
  expect((await accounts.createAccount({ name: ' Osteria\n', plan: Plan.FREE })).account?.name).toBe('Osteria');
  expect(await reasonOf((await as(Role.EDITOR)).renameAccount({ name: 'x' }))).toBe('ROLE_REQUIRED');
  expect((await accounts.getAccount({})).account).toEqual(renamed);
});

test('an account that is closed meanwhile is not changed', async () => {
  const { id, accounts } = await newAccount({ name: 'Trattoria' });
  const closing = await pool.connect();
  await closing.query('begin');
  await closing.query(`update accounts set closed_at = now(), delete_data = true, name = '(deleted)' where id = $1`, [
    decodeId('acct', id),
  ]);
  const calls = Promise.all([
    reasonOf(accounts.updateAccount({ name: 'Osteria' })),
    reasonOf(accounts.renameAccount({ name: 'Osteria' })),
  ]);
  const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
  await expect.poll(async () => (await closing.query(waiting)).rowCount).toBe(2);
  await closing.query('commit');
  closing.release();
  expect(await calls).toEqual(['NOT_FOUND', 'NOT_FOUND']);
  const { rows } = await pool.query('select name from accounts where id = $1', [decodeId('acct', id)]);
  expect(rows).toEqual([{ name: '(deleted)' }]);
});

test('members are added, listed by email and removed, with one event each', async () => {
  const { id, accounts } = await newAccount();
  const { member: zoe } = await accounts.addMember({ email: 'zoe@example.com', role: Role.VIEWER });
  const { member: anna } = await accounts.addMember({ email: 'Anna@example.com', role: Role.OWNER });
  expect(zoe?.id).toMatch(/^mbr_/);
  expect((await accounts.listMembers({})).members).toEqual([anna, zoe]);
  const removed = await Promise.all([1, 2].map(() => reasonOf(accounts.removeMember({ id: zoe?.id ?? '' }))));
  expect(removed.sort()).toEqual(['NOT_FOUND', 'succeeded']);
  expect((await accounts.listMembers({})).members).toEqual([anna]);
  const eventData = { id: zoe?.id, email: 'zoe@example.com', role: 'viewer', created_at: expect.any(String) };
  expect(await events(zoe?.id ?? '')).toEqual([
    { type: 'team.member_added', source: `/accounts/${id}`, data: eventData },
    { type: 'team.member_removed', source: `/accounts/${id}`, data: eventData },
  ]);
});

test('an email is a member once, in any case, and only a member of its own account', async () => {
  const [one, other] = [await newAccount(), await newAccount()];
  const { member } = await one.accounts.addMember({ email: 'anna@example.com', role: Role.ADMIN });
  expect(await reasonOf(one.accounts.addMember({ email: 'ANNA@example.com', role: Role.EDITOR }))).toBe(
    'ALREADY_EXISTS',
  );
  expect(await reasonOf(other.accounts.addMember({ email: 'anna@example.com', role: Role.EDITOR }))).toBe('succeeded');
  for (const id of [member?.id ?? '', 'mbr_01kagcpn9te5gvjxq1rmm30w4h', 'x']) {
    expect(await reasonOf(other.accounts.removeMember({ id }))).toBe('NOT_FOUND');
  }
  for (const email of ['', 'anna', 'anna@', `${'x'.repeat(250)}@example.com`]) {
    expect(await reasonOf(one.accounts.addMember({ email, role: Role.ADMIN }))).toBe('INVALID_FIELD');
  }
  expect(await reasonOf(one.accounts.addMember({ email: 'b@example.com' }))).toBe('INVALID_FIELD');
  expect((await one.accounts.listMembers({})).members).toEqual([member]);
});

test('a member has another role as soon as it is changed', async () => {
  const { id, accounts } = await newAccount();
  const { member } = await accounts.addMember({ email: 'anna@example.com', role: Role.VIEWER });
  const asAnna = asMember(id, member?.id ?? '', CodesService);
  const create = () => reasonOf(asAnna.createCode({ targetUrl: 'https://example.com' }));
  expect(await create()).toBe('ROLE_REQUIRED');
  const changed = await accounts.updateMember({ id: member?.id ?? '', role: Role.EDITOR });
  expect(changed.member).toEqual({ ...member, role: Role.EDITOR });
  expect((await accounts.listMembers({})).members).toEqual([changed.member]);
  expect(await create()).toBe('succeeded');
  for (const unknown of ['mbr_01kagcpn9te5gvjxq1rmm30w4h', 'x']) {
    expect(await reasonOf(accounts.updateMember({ id: unknown, role: Role.EDITOR }))).toBe('NOT_FOUND');
  }
  const other = await newAccount();
  expect(await reasonOf(other.accounts.updateMember({ id: member?.id ?? '', role: Role.OWNER }))).toBe('NOT_FOUND');
});

test('what a member does is audited as theirs and costs nothing of the quota', async () => {
  const { id, accounts } = await newAccount({ overrides: { monthlyQuota: 0n } });
  const { member } = await accounts.addMember({ email: 'ben@example.com', role: Role.OWNER });
  const { code } = await asMember(id, member?.id ?? '', CodesService).createCode({ targetUrl: 'https://example.com' });
  const { entries } = await accounts.listAuditEntries({});
  expect(entries[0]).toMatchObject({
    actor: 'ben@example.com',
    action: 'CodesService/CreateCode',
    subject: code?.id,
  });
  expect((await accounts.getAccount({})).usage?.requestsUsed).toBe(0n);
});

test('only owners add, change and remove owners', async () => {
  const { id, accounts } = await newAccount();
  const { member: owner } = await accounts.addMember({ email: 'owner@example.com', role: Role.OWNER });
  const { member: admin } = await accounts.addMember({ email: 'admin@example.com', role: Role.ADMIN });
  await accounts.addMember({ email: 'second@example.com', role: Role.OWNER });
  const asAdmin = asMember(id, admin?.id ?? '', AccountsService);
  const { members } = await accounts.listMembers({});
  for (const call of [
    () => asAdmin.addMember({ email: 'third@example.com', role: Role.OWNER }),
    () => asAdmin.updateMember({ id: admin?.id ?? '', role: Role.OWNER }),
    () => asAdmin.updateMember({ id: owner?.id ?? '', role: Role.VIEWER }),
    () => asAdmin.removeMember({ id: owner?.id ?? '' }),
  ]) {
    expect(await reasonOf(call())).toBe('ROLE_REQUIRED');
  }
  expect((await accounts.listMembers({})).members).toEqual(members);
  const { member: editor } = await asAdmin.addMember({ email: 'editor@example.com', role: Role.EDITOR });
  await asAdmin.updateMember({ id: editor?.id ?? '', role: Role.ADMIN });
  await asAdmin.removeMember({ id: editor?.id ?? '' });
  const asOwner = asMember(id, owner?.id ?? '', AccountsService);
  await asOwner.updateMember({ id: admin?.id ?? '', role: Role.OWNER });
  await asOwner.removeMember({ id: admin?.id ?? '' });
});

test('of an account’s owners, one always remains', async () => {
  const { id, accounts } = await newAccount();
  const { member: anna } = await accounts.addMember({ email: 'anna@example.com', role: Role.OWNER });
  const annaId = anna?.id ?? '';
  expect(await reasonOf(accounts.removeMember({ id: annaId }))).toBe('LAST_OWNER');
  expect(await reasonOf(accounts.updateMember({ id: annaId, role: Role.ADMIN }))).toBe('LAST_OWNER');
  expect(await reasonOf(accounts.updateMember({ id: annaId, role: Role.OWNER }))).toBe('succeeded');
  for (let round = 0; round < 5; round++) {
    await accounts.addMember({ email: `ben${round}@example.com`, role: Role.OWNER });
    const owners = (await accounts.listMembers({})).members.filter(({ role }) => role === Role.OWNER);
    // Each owner removes the other at the same time.
    const [one, two] = [owners[0]?.id ?? '', owners[1]?.id ?? ''];
    const outcomes = await Promise.all([
      reasonOf(asMember(id, one, AccountsService).removeMember({ id: two })),
      reasonOf(asMember(id, two, AccountsService).updateMember({ id: one, role: Role.VIEWER })),
    ]);
    expect(outcomes).toContain('succeeded');
    const left = (await accounts.listMembers({})).members.filter(({ role }) => role === Role.OWNER);
    expect(left).toHaveLength(1);
  }
});

test('a revoked key is rejected at once; a rotation issues a new one', async () => {
  const { apiKey, accounts } = await newAccount();
  await accounts.revokeKey({});
  expect((await codes(apiKey)).status).toBe(401);
  await accounts.revokeKey({});
  const { apiKey: fresh } = await accounts.rotateKey({});
  expect((await codes(fresh)).status).toBe(200);
});

test('of keys issued concurrently for an account, one is valid', async () => {
  const { accounts } = await newAccount();
  const rotated = await Promise.all(Array.from({ length: 6 }, () => accounts.rotateKey({})));
  const answers = await Promise.all(rotated.map(({ apiKey }) => codes(apiKey)));
  expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401, 401, 401]);
});

test('the audit log has actor, action and subject, newest first, of this account only, and no failed calls', async () => {
  const [{ id, apiKey, accounts }, other] = [await newAccount(), await newAccount()];
  const acting = internal(signpost, CodesService, id);
  const { code } = await acting.createCode({ targetUrl: 'https://example.com' });
  const subject = code?.id ?? '';
  await acting.updateCode({ id: subject, updateMask: { paths: ['name'] }, name: 'x' });
  await acting.updateCode({ id: subject, updateMask: { paths: ['name'] }, name: 'x' });
  await acting.deleteCode({ id: subject });
  await acting.restoreCode({ id: subject });
  await accounts.updateAccount({ name: 'Osteria' });
  const { member } = await accounts.addMember({ email: 'anna@example.com', role: Role.OWNER });
  await reasonOf(accounts.addMember({ email: 'anna@example.com', role: Role.OWNER }));
  await accounts.rotateKey({});
  await accounts.revokeKey({});
  // Changes by API key are not audited.
  await fetch(`${signpost.url}/api/v1/qr-codes/${subject}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${apiKey}` },
  });
  const { entries } = await accounts.listAuditEntries({});
  expect(entries.map(({ actor, action, subject }) => [actor, action, subject])).toEqual([
    ['anna@example.com', 'AccountsService/RevokeKey', id],
    ['anna@example.com', 'AccountsService/RotateKey', id],
    ['anna@example.com', 'AccountsService/AddMember', member?.id],
    ['anna@example.com', 'AccountsService/UpdateAccount', id],
    ['anna@example.com', 'CodesService/RestoreCode', subject],
    ['anna@example.com', 'CodesService/DeleteCode', subject],
    ['anna@example.com', 'CodesService/UpdateCode', subject],
    ['anna@example.com', 'CodesService/CreateCode', subject],
    ['npm start', 'AccountsService/CreateAccount', id],
  ]);
  const page = await accounts.listAuditEntries({ limit: 2, offset: 1 });
  expect(page.entries).toEqual(entries.slice(1, 3));
  expect((await other.accounts.listAuditEntries({})).entries).toHaveLength(1);
});
