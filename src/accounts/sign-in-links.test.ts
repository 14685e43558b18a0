import { createHash, randomUUID } from 'node:crypto';
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { decodeId } from '../../common/contract/ids.ts';
import { AccountsService, Role } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { internal } from '../../test/contract/internal.ts';
import { type Signpost, startSignpost } from '../../test/harness/processes.ts';
import { deleteExpiredLinks } from './sign-in-links.ts';

let signpost: Signpost;
let pool: pg.Pool;
beforeAll(async () => {
  signpost = await startSignpost({ gateways: 0, env: { ROLES: 'rpc' } });
  pool = new pg.Pool({ connectionString: signpost.databaseUrl });
});
afterAll(() => pool.end());

async function newAccount(name: string) {
  const { accountId } = await signpost.createAccount({ name });
  return { id: accountId, accounts: internal(signpost, AccountsService, accountId) };
}

const reasonOf = (call: Promise<unknown>) =>
  call.then(
    () => 'succeeded',
    (error: unknown) => readFailure(error).reason,
  );

test('the memberships of an address are found in any case, newest first, in open accounts', async () => {
  const all = internal(signpost, AccountsService);
  const email = `${randomUUID()}@example.com`;
  const joined: string[] = [];
  for (const role of [Role.VIEWER, Role.OWNER, Role.EDITOR]) {
    const { id, accounts } = await newAccount(`With ${role}`);
    await accounts.addMember({ email: role === Role.OWNER ? email.toUpperCase() : email, role });
    joined.unshift(id);
  }
  const { memberships, nextCursor } = await all.listMemberships({ email });
  expect(nextCursor).toBeUndefined();
  expect(memberships.map(({ accountId, accountName, member }) => [accountId, accountName, member?.role])).toEqual([
    [joined[0], 'With 3', Role.EDITOR],
    [joined[1], 'With 1', Role.OWNER],
    [joined[2], 'With 4', Role.VIEWER],
  ]);
  const first = await all.listMemberships({ email: email.toUpperCase(), limit: 2 });
  expect(first.memberships).toEqual(memberships.slice(0, 2));
  const second = await all.listMemberships({ email, cursor: first.nextCursor ?? '' });
  expect(second.memberships).toEqual(memberships.slice(2));
  const others = { email: 'other@example.com', cursor: first.nextCursor ?? '' };
  expect(await reasonOf(all.listMemberships(others))).toBe('INVALID_CURSOR');
  await internal(signpost, AccountsService, joined[0]).closeAccount({});
  expect((await all.listMemberships({ email })).memberships).toEqual(memberships.slice(1));
  expect((await all.listMemberships({ email: `x${email}` })).memberships).toEqual([]);
});

test('an address with a character that folds to a letter of another one is not that address', async () => {
  const { accounts } = await newAccount('Bank');
  await accounts.addMember({ email: 'kim.milkin@example.com', role: Role.OWNER });
  // The Kelvin sign and the capital I with a dot.
  for (const email of ['\u212aim.milkin@example.com', 'k\u0130m.milkin@example.com']) {
    expect((await internal(signpost, AccountsService).listMemberships({ email })).memberships).toEqual([]);
    expect(await reasonOf(accounts.createSignInLink({ email }))).toBe('NOT_FOUND');
  }
});

describe('a sign-in link', () => {
  const all = () => internal(signpost, AccountsService);
  const redeem = (token: string) => reasonOf(all().redeemSignInLink({ token }));

  async function memberWithLink() {
    const { id, accounts } = await newAccount('Trattoria');
    const { member } = await accounts.addMember({ email: 'anna@example.com', role: Role.EDITOR });
    const { token, expiresAt } = await accounts.createSignInLink({ email: 'Anna@Example.com' });
    return { id, accounts, member, token, expiresAt };
  }

  test('is redeemed once, even by concurrent calls, for the membership', async () => {
    const { id, accounts, member, token, expiresAt } = await memberWithLink();
    expect(token).toMatch(/^[\w-]{43}$/);
    const minutes = (timestampMs(expiresAt as Timestamp) - Date.now()) / 60_000;
    expect(Math.round(minutes)).toBe(15);
    const answers = await Promise.allSettled(
      Array.from({ length: 8 }, () => internal(signpost, AccountsService).redeemSignInLink({ token })),
    );
    const [redeemed, ...others] = answers.flatMap((each) => (each.status === 'fulfilled' ? each.value : []));
    expect(others).toEqual([]);
    expect(redeemed?.membership).toMatchObject({ accountId: id, accountName: 'Trattoria', member });
    for (const each of answers) {
      if (each.status === 'rejected') expect(readFailure(each.reason).reason).toBe('NOT_FOUND');
    }
    expect(await redeem(token)).toBe('NOT_FOUND');
    const { entries } = await accounts.listAuditEntries({ limit: 2 });
    expect(entries.map(({ action, subject }) => [action, subject])).toEqual([
      ['AccountsService/RedeemSignInLink', member?.id],
      ['AccountsService/CreateSignInLink', member?.id],
    ]);
  });

  test('is stored as a hash only', async () => {
    const { member, token } = await memberWithLink();
    const { rows } = await pool.query<{ link: string; hash: Buffer }>(
      'select l::text as link, hash from sign_in_links l where member_id = $1',
      [decodeId('mbr', member?.id ?? '')],
    );
    expect(rows[0]?.hash).toEqual(createHash('sha256').update(token).digest());
    expect(rows[0]?.link).not.toContain(token);
  });

  test('is invalid once it has expired, or was replaced, or its member was removed, or the account closed', async () => {
    const { id, accounts, member, token: replaced } = await memberWithLink();
    const link = () => accounts.createSignInLink({ email: 'anna@example.com' });
    const { token: expired } = await link();
    expect(await redeem(replaced)).toBe('NOT_FOUND');
    const expire = 'update sign_in_links set expires_at = now() where member_id = $1';
    await pool.query(expire, [decodeId('mbr', member?.id ?? '')]);
    expect(await redeem(expired)).toBe('NOT_FOUND');

    const { token: renewed } = await link();
    expect(await redeem(renewed)).toBe('succeeded');

    const { token: removed } = await link();
    await accounts.removeMember({ id: member?.id ?? '' });
    expect(await redeem(removed)).toBe('NOT_FOUND');
    expect(await reasonOf(link())).toBe('NOT_FOUND');

    await accounts.addMember({ email: 'anna@example.com', role: Role.VIEWER });
    const { token: closed } = await link();
    await internal(signpost, AccountsService, id).closeAccount({});
    for (const token of [closed, 'x', '\u0000']) expect(await redeem(token)).toBe('NOT_FOUND');
  });

  test('is deleted after it has expired', async () => {
    const [expired, valid] = [await memberWithLink(), await memberWithLink()];
    const ids = [expired, valid].map(({ member }) => decodeId('mbr', member?.id ?? ''));
    await pool.query('update sign_in_links set expires_at = now() where member_id = $1', [ids[0]]);
    await deleteExpiredLinks(pool);
    const { rows } = await pool.query('select member_id from sign_in_links where member_id = any($1)', [ids]);
    expect(rows).toEqual([{ member_id: ids[1] }]);
    expect(await redeem(valid.token)).toBe('succeeded');
  });
});
