import { LockMode } from '@mikro-orm/core';
import type { Database } from '../db/database.ts';
import { run, statement, unitOfWork } from '../db/sql.ts';
import { DomainEntity } from './domain.ts';
import { publishHost } from './publish-host.ts';

const lift = statement(
  'domains_lift_versions',
  `select setval('domain_versions', nextval('domain_versions') + $1::bigint)`,
);

/**
 * Tells gateways anew of every domain that has ever been live, whosever it is, in versions that are `lifted` above
 * those here. Returns how many there were.
 */
export async function republishDomains({ orm }: Database, lifted: number): Promise<number> {
  return orm.em.fork().transactional(async (em) => {
    const tx = unitOfWork(em);
    await run(tx, lift, [lifted]);
    const domains = await em.find(
      DomainEntity,
      { firstLiveAt: { $ne: null } },
      { orderBy: { id: 'asc' }, lockMode: LockMode.PESSIMISTIC_WRITE },
    );
    for (const domain of domains) {
      domain.version = await publishHost(tx, domain, { failing: domain.state === 'failing' });
    }
    return domains.length;
  });
}
