import { LockMode, raw, UniqueConstraintViolationException } from '@mikro-orm/core';
import pg from 'pg';
import { beforeAll, expect, test } from 'vitest';
import { newUuid } from '../../common/contract/ids.ts';
import { run, statement } from '../../common/postgres/sql.ts';
import { isUnavailable } from '../../common/postgres/unavailable.ts';
import { afterFile } from '../../test/harness/after-file.ts';
import { freshDatabase } from '../../test/harness/database.ts';
import { AccountEntity } from '../access/entities.ts';
import { MemberEntity } from '../accounts/member.ts';
import { DomainEntity } from '../domains/domain.ts';
import { entities } from '../entities.ts';
import { type Database, openDatabase } from './database.ts';
import { connectionOf, ormTransaction } from './orm-transaction.ts';

const CONNECTIONS = 2;

let database: Database;
let url: string;
beforeAll(async () => {
  ({ url } = await freshDatabase());
  database = await openDatabase(url, CONNECTIONS, entities);
  afterFile(() => database.close());
});

/** Creates an account with a member; returns the account's UUID. */
async function accountWith(email: string): Promise<string> {
  const accountId = newUuid();
  await ormTransaction(database.orm, async (em) => {
    em.create(AccountEntity, { id: accountId, name: "O'Neil? \\? $1", plan: 'business' });
    await em.flush();
    em.create(MemberEntity, { id: newUuid(), accountId, email, role: 'owner' });
  });
  return accountId;
}

/** The last statement of each connection in `pg_stat_activity`. */
async function activity(): Promise<string> {
  const observer = new pg.Client(url);
  await observer.connect();
  const { rows } = await observer.query<{ query: string }>(
    `select query from pg_stat_activity where application_name = 'signpost-core' and datname = current_database()`,
  );
  await observer.end();
  return rows.map(({ query }) => query).join('\n');
}

test('values that the ORM writes and reads are not in pg_stat_activity', async () => {
  const { orm } = database;
  const accountId = await accountWith('anna@example.com');
  const activities: string[] = [];
  await ormTransaction(orm, async (em) => {
    const member = await em.findOneOrFail(MemberEntity, { accountId, email: 'anna@example.com' });
    activities.push(await activity());
    member.email = 'anna.b@example.com';
    await em.flush();
    activities.push(await activity());
    em.create(MemberEntity, { id: newUuid(), accountId, email: 'anna.c@example.com', role: 'viewer' });
    await em.flush();
    activities.push(await activity());
  });
  await orm.em.fork().nativeDelete(MemberEntity, { email: { $in: ['anna.b@example.com', 'anna.c@example.com'] } });
  activities.push(await activity());
  expect(activities).toEqual([
    expect.stringMatching(/select .* from "members" .* = \$1 and .* = \$2/),
    expect.stringMatching(/update "members" set "email" = \$1 where "id" = \$2/),
    expect.stringMatching(/insert into "members" .* values \(\$1, \$2, \$3, \$4\)/),
    expect.stringMatching(/delete from "members" where "email" in \(\$1, \$2\)/),
  ]);
  expect(activities.join('\n')).not.toContain('anna');
});

test('values of every type are stored as they were sent', async () => {
  const accountId = await accountWith('kinds@example.com');
  const since = new Date('2026-11-22T04:05:06.789Z');
  const em = database.orm.em.fork();
  const id = newUuid();
  const written = {
    id,
    accountId,
    hostname: 'kinds.example',
    token: `'; drop table codes; -- ? \\? \\ ??`,
    version: 7,
  };
  await em.insert(DomainEntity, {
    ...written,
    state: 'live',
    problem: 'ü "\u{1F600}"',
    stateSince: since,
    firstLiveAt: null,
    checkAt: since,
    createdAt: since,
  });
  const found = await em.findOneOrFail(DomainEntity, { hostname: { $in: ['kinds.example', 'other.example'] } });
  expect(found).toMatchObject({ ...written, problem: 'ü "\u{1F600}"', stateSince: since, firstLiveAt: null });
  expect(await em.findOne(DomainEntity, { id, [raw('lower(hostname)')]: 'kinds.example' })).toBe(found);
  expect(await em.findOne(AccountEntity, { id: accountId })).toMatchObject({
    name: "O'Neil? \\? $1",
    deleteData: false,
  });
  expect(await em.count(DomainEntity, { accountId, version: { $gt: 6 } })).toBe(1);
});

test('several changes in one flush are applied to their own rows', async () => {
  const accountId = await accountWith('several@example.com');
  const emails = ['b1@example.com', 'b2@example.com', 'b3@example.com'];
  await ormTransaction(database.orm, async (em) => {
    for (const email of emails) em.create(MemberEntity, { id: newUuid(), accountId, email, role: 'viewer' });
  });
  await ormTransaction(database.orm, async (em) => {
    const members = await em.find(MemberEntity, { accountId, role: 'viewer' });
    for (const member of members) member.email = `new-${member.email}`;
  });
  const read = await database.orm.em.fork().find(MemberEntity, { accountId }, { orderBy: { email: 'asc' } });
  expect(read.map(({ email }) => email)).toEqual([...emails.map((email) => `new-${email}`), 'several@example.com']);
});

const lockedMembers = statement<{ email: string }>('test_members', 'select email from members where account_id = $1');

test('statements on the connection of an entity manager are part of its transaction', async () => {
  const accountId = await accountWith('together@example.com');
  const work = ormTransaction(database.orm, async (em) => {
    const member = await em.findOneOrFail(MemberEntity, { accountId }, { lockMode: LockMode.PESSIMISTIC_WRITE });
    member.email = 'changed@example.com';
    await em.flush();
    expect(await run(connectionOf(em), lockedMembers, [accountId])).toEqual([{ email: 'changed@example.com' }]);
    throw new Error('rolled back');
  });
  await expect(work).rejects.toThrow('rolled back');
  expect(await run(database.pool, lockedMembers, [accountId])).toEqual([{ email: 'together@example.com' }]);
});

test('a nested transaction that fails rolls back only its own changes', async () => {
  const accountId = await accountWith('outer@example.com');
  await ormTransaction(database.orm, async (em) => {
    const again = em.transactional((inner) =>
      inner.insert(AccountEntity, {
        id: accountId,
        name: 'twice',
        plan: 'free',
        createdAt: new Date(),
        deleteData: false,
      }),
    );
    await expect(again).rejects.toThrow(UniqueConstraintViolationException);
    expect(await em.count(MemberEntity, { accountId })).toBe(1);
  });
});

test('a connection that Postgres terminates in a transaction counts as unavailable and is released to the pool', async () => {
  for (let round = 0; round < 2 * CONNECTIONS; round++) {
    const work = ormTransaction(database.orm, async (em) => {
      await em.count(AccountEntity);
      await em.execute('select pg_terminate_backend(pg_backend_pid())');
    });
    await expect(work).rejects.toSatisfy(isUnavailable);
  }
  const implicit = database.orm.em.fork().transactional(async (em) => {
    await em.execute('select pg_terminate_backend(pg_backend_pid())');
  });
  await expect(implicit).rejects.toSatisfy(isUnavailable);
  await accountWith('after@example.com');
  expect(database.pool.totalCount - database.pool.idleCount).toBe(0);
});
