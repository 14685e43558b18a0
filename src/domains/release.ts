import { LockMode } from '@mikro-orm/core';
import { unitOfWork } from '../../common/postgres/sql.ts';
import type { Database } from '../db/database.ts';
import { DomainEntity } from './domain.ts';
import { publishHost } from './publish-host.ts';

/**
 * Removes all domains of an account that was closed. Whoever owns the hostnames may verify them anew; until then they
 * serve nobody else's codes.
 */
export async function releaseDomains({ orm }: Database, accountId: string): Promise<void> {
  await orm.em.fork().transactional(async (em) => {
    const domains = await em.find(
      DomainEntity,
      { accountId },
      { orderBy: { id: 'asc' }, lockMode: LockMode.PESSIMISTIC_WRITE },
    );
    for (const domain of domains) {
      if (domain.state !== 'pending') await publishHost(unitOfWork(em), domain, { removed: true });
      em.remove(domain);
    }
  });
}
