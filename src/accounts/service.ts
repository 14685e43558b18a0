import type { ServiceImpl } from '@connectrpc/connect';
import type { AccountsService, CreateAccountRequest } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { accountOf } from '../access/caller.ts';
import { PLANS } from '../access/plans.ts';
import { openMeters, usageOf } from '../access/usage.ts';
import { newUuid } from '../contract/ids.ts';
import { pageOf } from '../contract/paging.ts';
import type { Database } from '../db/database.ts';
import { unitOfWork } from '../db/sql.ts';
import { Account, accountMessage, planName } from './account.ts';
import { replaceKey } from './key.ts';

const ACCOUNTS_PAGE = { standard: 100, most: 1_000 } as const;

type Implemented = 'createAccount' | 'getAccount' | 'listAccounts' | 'rotateKey';

/** Accounts and their keys, for internal services. */
export function accountsService({ orm, pool }: Database): Pick<ServiceImpl<typeof AccountsService>, Implemented> {
  return {
    async createAccount(request) {
      return orm.em.fork().transactional(async (em) => {
        const account = em.create(Account, { id: newUuid(), ...propertiesOf(request) });
        await em.flush();
        const unit = unitOfWork(em);
        await openMeters(unit, account.id);
        return { account: accountMessage(account), apiKey: await replaceKey(unit, account.id) };
      });
    },
    async getAccount(_, context) {
      const { id, codeLimit, batchLimit } = accountOf(context);
      const account = await orm.em.fork().findOneOrFail(Account, { id });
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
      };
    },
    async listAccounts(request) {
      const page = pageOf(request, ACCOUNTS_PAGE);
      const [accounts, total] = await orm.em.fork().findAndCount(Account, {}, { ...page, orderBy: { id: 'desc' } });
      return { accounts: accounts.map(accountMessage), total: BigInt(total) };
    },
    async rotateKey(_, context) {
      return { apiKey: await replaceKey(pool, accountOf(context).id) };
    },
  };
}

function propertiesOf({ name, plan, overrides }: CreateAccountRequest) {
  return {
    name,
    plan: planName(plan),
    monthlyQuota: overrides?.monthlyQuota === undefined ? null : Number(overrides.monthlyQuota),
    codeLimit: overrides?.codeLimit === undefined ? null : Number(overrides.codeLimit),
    batchLimit: overrides?.batchLimit ?? null,
    featureApi: overrides?.api ?? null,
    featureBulk: overrides?.bulk ?? null,
    featureImages: overrides?.images ?? null,
  };
}
