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

/** An account with a member; gives the UUID of the account. */
async function accountWith(email: string): Promise<string> {
  const accountId = newUuid();
  await ormTransaction(database.orm, async (em) => {
    em.create(AccountEntity, { id: accountId, name: "O'Neil? \\? $1", plan: 'business' });
    await em.flush();
    em.create(MemberEntity, { id: newUuid(), accountId, email, role: 'owner' });
  });
  return accountId;
}

/** The last statement of each connection, as whoever may read `pg_stat_activity` sees it. */
async function shown(): Promise<string> {
  const watcher = new pg.Client(url);
  await watcher.connect();
  const { rows } = await watcher.query<{ query: string }>(
    `select query from pg_stat_activity where application_name = 'signpost-core' and datname = current_database()`,
  );
  await watcher.end();
  return rows.map(({ query }) => query).join('\n');
}

test('what the ORM writes and reads is not in pg_stat_activity', async () => {
  const { orm } = database;
  const accountId = await accountWith('anna@example.com');
  const texts: string[] = [];
  await ormTransaction(orm, async (em) => {
    const member = await em.findOneOrFail(MemberEntity, { accountId, email: 'anna@example.com' });
    texts.push(await shown());
    member.email = 'anna.b@example.com';
    await em.flush();
    texts.push(await shown());
    em.create(MemberEntity, { id: newUuid(), accountId, email: 'anna.c@example.com', role: 'viewer' });
    await em.flush();
    texts.push(await shown());
  });
  await orm.em.fork().nativeDelete(MemberEntity, { email: { $in: ['anna.b@example.com', 'anna.c@example.com'] } });
  texts.push(await shown());
  expect(texts).toEqual([
    expect.stringMatching(/select .* from "members" .* = \$1 and .* = \$2/),
    expect.stringMatching(/update "members" set "email" = \$1 where "id" = \$2/),
    expect.stringMatching(/insert into "members" .* values \(\$1, \$2, \$3, \$4, \$5\)/),
    expect.stringMatching(/delete from "members" where "email" in \(\$1, \$2\)/),
  ]);
  expect(texts.join('\n')).not.toContain('anna');
});

test('values of every kind arrive as they were sent', async () => {
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

test('several changes of one flush each reach their row', async () => {
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

test('statements on its connection are part of the transaction of an entity manager', async () => {
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

test('a nested transaction that fails undoes its own part', async () => {
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

test('a connection that Postgres ends in a transaction is away, and goes back to the pool', async () => {
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
