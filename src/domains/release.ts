import { LockMode } from '@mikro-orm/core';
import type { Database } from '../db/database.ts';
import { ormTransaction } from '../db/orm-transaction.ts';
import { DomainEntity } from './domain.ts';
import { publishHost } from './publish-host.ts';

/**
 * Removes all domains of a closed account. Any account may then verify the hostnames again; until one does, they serve
 * no other account's codes.
 */
export async function releaseAccountDomains({ orm }: Database, accountId: string): Promise<void> {
  await ormTransaction(orm, async (em) => {
    const domains = await em.find(
      DomainEntity,
      { accountId },
      { orderBy: { id: 'asc' }, lockMode: LockMode.PESSIMISTIC_WRITE },
    );
    for (const domain of domains) {
      if (domain.state !== 'pending') await publishHost(em, domain, { removed: true });
      em.remove(domain);
    }
  });
}
