import { randomBytes } from 'node:crypto';
import type { ServiceImpl } from '@connectrpc/connect';
import { LockMode, UniqueConstraintViolationException } from '@mikro-orm/core';
import { failure } from '../../common/contract/errors.ts';
import { decodeId, encodeId, newUuid } from '../../common/contract/ids.ts';
import { expectBelowLimit } from '../../common/contract/limits.ts';
import { type Queryable, run, statement } from '../../common/postgres/sql.ts';
import { fairQueue } from '../../common/queues/fair-queue.ts';
import type { DomainsService } from '../../proto/gen/signpost/domains/v1/domains_pb.ts';
import { inAccountQueue } from '../access/account-queue.ts';
import { recordChange } from '../access/audit.ts';
import { commitLimitOf, ormTransactionOf } from '../access/call-transaction.ts';
import { accountOf } from '../access/caller.ts';
import { lockAccount } from '../access/lock-account.ts';
import { notFound } from '../calls/not-found.ts';
import type { Database } from '../db/database.ts';
import { notifying } from '../db/notifications.ts';
import { connectionOf } from '../db/orm-transaction.ts';
import { DomainEntity, domainMessage } from './domain.ts';
import { readHostname } from './hostname.ts';
import { lookUp, type Platform, ResolversUnavailable } from './look-up.ts';
import { publishHost } from './publish-host.ts';
import { applyDnsResult, type DomainKey } from './transition.ts';

const notifyChecks = statement('domains_notify', `select ${notifying('domains')}`);

/** How many look-ups an account's calls have in progress at a time; one may take 15 s. */
const LOOK_UPS = {
  concurrency: Number.POSITIVE_INFINITY,
  concurrencyPerCaller: 10,
  maxWaiting: 1_000,
  items: 'checks of domains',
};

/** Custom domains of accounts, for internal services. */
export function domainsService(options: {
  database: Database;
  platform: Platform;
}): ServiceImpl<typeof DomainsService> {
  const { platform } = options;
  const { orm } = options.database;
  const inTurn = fairQueue(LOOK_UPS);
  return {
    async addDomain(request, context) {
      const { id: accountId } = accountOf(context);
      const read = readHostname(request.hostname, platform.host);
      if ('problem' in read) throw failure('INVALID_FIELD', read.problem);
      const { hostname } = read;
      const added = await ormTransactionOf(context, orm, async (em) => {
        // In any account: a verified hostname can't be added by another one.
        if (await em.count(DomainEntity, { hostname, state: { $ne: 'pending' }, accountId: { $ne: accountId } })) {
          throw failure('ALREADY_EXISTS', `Another account has verified ${hostname} and must remove it first.`);
        }
        await lockAccount(connectionOf(em), accountId);
        expectBelowLimit('domains', await em.count(DomainEntity, { accountId }));
        const domain = em.create(DomainEntity, {
          id: newUuid(),
          accountId,
          hostname,
          state: 'pending',
          token: randomBytes(16).toString('hex'),
          problem: '',
          firstLiveAt: null,
        });
        await em.flush();
        await run(connectionOf(em), notifyChecks);
        await recordChange(connectionOf(em), context, encodeId('domain', domain.id));
        return domain;
      }).catch((error: unknown) => {
        if (!(error instanceof UniqueConstraintViolationException)) throw error;
        throw failure('ALREADY_EXISTS', `${hostname} is already a domain of this account.`);
      });
      return { domain: domainMessage(added) };
    },
    async verifyDomain(request, context) {
      const { id: accountId } = accountOf(context);
      const key = keyOf(accountId, request.id);
      const domain = await orm.em.fork().findOne(DomainEntity, key);
      if (!domain) throw notFound('domain');
      const { signal } = context;
      const result = await inTurn(accountId, signal, () => lookUp(domain, platform, signal)).catch((error: unknown) => {
        if (!(error instanceof ResolversUnavailable)) throw error;
        const sentence = `The DNS resolvers did not answer for ${domain.hostname}; try again.`;
        throw failure('RESOLVERS_UNAVAILABLE', sentence, { hostname: domain.hostname }, error);
      });
      const record = (tx: Queryable) => recordChange(tx, context, request.id);
      const updated = await inAccountQueue(context, () =>
        applyDnsResult(orm, key, result, record, commitLimitOf(context)),
      );
      if (!updated) throw notFound('domain');
      return { domain: domainMessage(updated) };
    },
    async listDomains(_, context) {
      const { id: accountId } = accountOf(context);
      const domains = await orm.em.fork().find(DomainEntity, { accountId }, { orderBy: { hostname: 'asc' } });
      return { domains: domains.map(domainMessage) };
    },
    async removeDomain(request, context) {
      const key = keyOf(accountOf(context).id, request.id);
      const removed = await ormTransactionOf(context, orm, async (em) => {
        const domain = await em.findOne(DomainEntity, key, { lockMode: LockMode.PESSIMISTIC_WRITE });
        if (!domain) throw notFound('domain');
        const tx = connectionOf(em);
        if (domain.state !== 'pending') await publishHost(em, domain, { removed: true });
        await recordChange(tx, context, request.id);
        em.remove(domain);
        return domain;
      });
      return { domain: domainMessage(removed) };
    },
    async checkHost({ hostname }) {
      const host = hostname.toLowerCase().replace(/\.$/, '');
      // In any account: the caller is a proxy, which does not know the account.
      // Postgres can't store NUL in text and would fail.
      const domain = host.includes('\0')
        ? null
        : await orm.em.fork().findOne(DomainEntity, { hostname: host, state: 'live' });
      if (!domain) throw failure('NOT_FOUND', `hostname: ${JSON.stringify(host)} is not a live domain.`);
      return { domain: domainMessage(domain) };
    },
  };
}

/** Fails with NOT_FOUND when `id` is not the id of a domain. */
function keyOf(accountId: string, id: string): DomainKey {
  const uuid = decodeId('domain', id);
  if (uuid === undefined) throw notFound('domain');
  return { id: uuid, accountId };
}
