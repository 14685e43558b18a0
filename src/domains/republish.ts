import { run, statement } from '../../common/postgres/sql.ts';
import type { Database } from '../db/database.ts';
import { connectionOf, ormTransaction } from '../db/orm-transaction.ts';
import { DomainEntity } from './domain.ts';
import { publishHost } from './publish-host.ts';

const lift = statement(
  'domains_lift_versions',
  `select setval('domain_versions', nextval('domain_versions') + $1::bigint)`,
);

/** Keeps domains from moving, so that what is published of them is still so when it commits. */
const lock = statement('domains_lock_all', 'lock table domains in exclusive mode');

/** Of all accounts, and so are the domains. Index: domains_proven. */
const removed = statement<{ hostname: string; accountId: string }>(
  'domains_removed',
  `select hostname, account_id as "accountId" from verified_hostnames h
   where not exists (select from domains d where d.hostname = h.hostname and d.state <> 'pending')`,
);

/**
 * Tells gateways anew of every hostname that was ever verified, whosever it is, in versions that are `lifted` above
 * those here. Returns how many there were.
 */
export async function republishDomains({ orm }: Database, lifted: number): Promise<number> {
  return ormTransaction(orm, async (em) => {
    const tx = connectionOf(em);
    await run(tx, lock);
    await run(tx, lift, [lifted]);
    const domains = await em.find(DomainEntity, { state: { $ne: 'pending' } });
    for (const domain of domains) {
      domain.version = await publishHost(em, domain, { failing: domain.state !== 'live' });
    }
    const gone = await run(tx, removed);
    for (const host of gone) await publishHost(em, host, { removed: true });
    return domains.length + gone.length;
  });
}
