import { create } from '@bufbuild/protobuf';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { raw } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { failure } from '../../common/contract/errors.ts';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import { nameOf, PLAN_BY_NAME } from '../../common/contract/names.ts';
import { LONG_PAGE_LIMIT } from '../../common/contract/ranges.ts';
import {
  type AccountsService,
  OverridesSchema,
  Plan,
  type UpdateAccountRequest,
} from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { listRequests } from '../access/api-requests.ts';
import { listChanges, recordChange } from '../access/audit.ts';
import { ormTransactionOf } from '../access/call-transaction.ts';
import { accountOf } from '../access/caller.ts';
import { AccountEntity } from '../access/entities.ts';
import { lockAccount } from '../access/lock-account.ts';
import { PLANS } from '../access/plans.ts';
import { openMeters, usageOf } from '../access/usage.ts';
import type { Cursors } from '../calls/cursors.ts';
import { fieldsToUpdate } from '../calls/field-mask.ts';
import { pageById } from '../calls/paging.ts';
import type { Database } from '../db/database.ts';
import { accountMessage, overrideColumns, readName } from './account.ts';
import type { AccountCleanup } from './cleanup.ts';
import { endedSessions } from './ended-sessions.ts';
import { replaceKey, revokeKey } from './key.ts';
import { listMemberships } from './memberships.ts';
import { signInLinks } from './sign-in-links.ts';
import { team } from './team.ts';

/** Accounts, their keys and their teams, for internal services. */
export function accountsService(options: {
  database: Database;
  cursors: Cursors;
  accountCleanup: AccountCleanup;
}): ServiceImpl<typeof AccountsService> {
  const { database, cursors, accountCleanup } = options;
  const { orm, pool } = database;

  /** Changes the account of a call, under a lock on its row, and writes an audit entry. */
  function changeAccount(
    context: HandlerContext,
    work: (account: AccountEntity, em: EntityManager) => Promise<void> | void,
  ): Promise<AccountEntity> {
    const { id } = accountOf(context);
    return ormTransactionOf(context, orm, async (em, tx) => {
      await lockAccount(tx, id);
      const account = await em.findOneOrFail(AccountEntity, { id });
      await work(account, em);
      await em.flush();
      await recordChange(tx, context, encodeId('acct', id));
      return account;
    });
  }

  /** Changes columns of an account. Fails with NOT_FOUND if it was closed since the call was admitted. */
  function changeOpenAccount(context: HandlerContext, changes: Partial<AccountEntity>): Promise<AccountEntity> {
    return changeAccount(context, (account) => {
      if (account.closedAt != null) throw failure('NOT_FOUND', 'The account is closed.');
      Object.assign(account, changes);
    });
  }

  return {
    ...team(database),
    ...signInLinks(pool),
    ...endedSessions(pool),
    async createAccount({ name, plan, overrides }, context) {
      return ormTransactionOf(context, orm, async (em, tx) => {
        const columns = { name: readName(name), plan: nameOf(PLAN_BY_NAME, plan), ...overrideColumns(overrides) };
        const account = em.create(AccountEntity, { id: newUuid(), ...columns });
        await em.flush();
        await openMeters(tx, account.id);
        await recordChange(tx, context, encodeId('acct', account.id), account.id);
        return { account: accountMessage(account), apiKey: await replaceKey(em, account.id) };
      });
    },
    async getAccount(_, context) {
      const { id, features, codeLimit, batchLimit } = accountOf(context);
      const account = await orm.em.fork().findOneOrFail(AccountEntity, { id });
      const used = await usageOf(pool, id);
      const quota = account.monthlyQuota ?? PLANS[account.plan].monthlyQuota;
      return {
        account: accountMessage(account),
        usage: {
          ...(quota === null ? {} : { monthlyQuota: BigInt(quota) }),
          requestsUsed: BigInt(used.requests),
          ...(codeLimit === null ? {} : { codeLimit: BigInt(codeLimit) }),
          codesUsed: BigInt(used.codes),
          batchLimit,
        },
        features,
      };
    },
    async listAccounts(request) {
      const { before, limit, offset, end } = pageById([cursors, 'accounts'], request, LONG_PAGE_LIMIT);
      const [accounts, total] = await orm.em
        .fork()
        .findAndCount(AccountEntity, { id: { $lt: before } }, { limit, offset, orderBy: { id: 'desc' } });
      const { items, next } = end(accounts);
      return { accounts: items.map(accountMessage), total: BigInt(total), ...next };
    },
    async updateAccount(request, context) {
      const changes = columnsToChange(request);
      const account = await changeOpenAccount(context, changes);
      return { account: accountMessage(account) };
    },
    async renameAccount(request, context) {
      const name = readName(request.name);
      const account = await changeOpenAccount(context, { name });
      return { account: accountMessage(account) };
    },
    async closeAccount({ deleteData }, context) {
      const account = await changeAccount(context, async (found, em) => {
        found.closedAt ??= raw<Date>('now()');
        found.deleteData ||= deleteData;
        if (found.deleteData) found.name = '(deleted)';
        // Due now, in case this call ends before everything has been cleared.
        found.clearAt = raw<Date>('now()');
        await revokeKey(em, found.id);
      });
      await accountCleanup.clear(account.id);
      return { account: accountMessage(account) };
    },
    async rotateKey(_, context) {
      return ormTransactionOf(context, orm, async (em, tx) => {
        const { id } = accountOf(context);
        await recordChange(tx, context, encodeId('acct', id));
        return { apiKey: await replaceKey(em, id) };
      });
    },
    async revokeKey(_, context) {
      return ormTransactionOf(context, orm, async (em, tx) => {
        const { id } = accountOf(context);
        await revokeKey(em, id);
        await recordChange(tx, context, encodeId('acct', id));
        return {};
      });
    },
    listMemberships: (request) => listMemberships({ pool, cursors }, request),
    async listAuditEntries(request, context) {
      return listChanges({ pool, cursors }, accountOf(context).id, request);
    },
    async listApiRequests(request, context) {
      return listRequests({ pool, cursors }, accountOf(context).id, request);
    },
  };
}

function columnsToChange({ name = '', plan, overrides, ...request }: UpdateAccountRequest): Partial<AccountEntity> {
  const hasValue = { name: name !== '', plan: plan !== Plan.UNSPECIFIED, overrides: overrides !== undefined };
  const fields = fieldsToUpdate(request.updateMask, hasValue, ['overrides']);
  return {
    ...(fields.has('name') ? { name: readName(name) } : {}),
    ...(fields.has('plan') ? { plan: nameOf(PLAN_BY_NAME, plan) } : {}),
    ...(fields.has('overrides') ? overrideColumns(overrides ?? create(OverridesSchema)) : {}),
  };
}
