import type { EntityManager } from '@mikro-orm/postgresql';
import { run, statement } from '../../common/postgres/sql.ts';
import type { Database } from '../db/database.ts';
import { connectionOf, ormTransaction } from '../db/orm-transaction.ts';
import { DomainEntity } from './domain.ts';
import { publishHost } from './publish-host.ts';

const raiseVersions = statement(
  'domains_raise_versions',
  `select setval('domain_versions',
     greatest(nextval('domain_versions') + $1::bigint, (extract(epoch from now()) * 1000)::bigint))`,
);

/** Prevents changes of domains, so that the published routes are still right at the commit. */
const lock = statement('domains_lock_all', 'lock table domains in exclusive mode');

/** Hostnames per transaction, during which no domain can be changed. */
const MAX_HOSTNAMES = 100;

/** The next hostnames after $1 that any account has ever verified. Index: verified_hostnames_pkey. */
const next = statement<{ hostname: string }>(
  'domains_next_verified',
  `select hostname from verified_hostnames where hostname > $1 order by hostname limit ${MAX_HOSTNAMES}`,
);

/** Those of the hostnames in $1 that no domain has verified any more. Index: domains_proven. */
const removed = statement<{ hostname: string; accountId: string }>(
  'domains_removed',
  `select hostname, account_id as "accountId" from verified_hostnames h
   where hostname = any($1)
     and not exists (select from domains d where d.hostname = h.hostname and d.state <> 'pending')`,
);

/**
 * Publishes the routes of every hostname that any account has ever verified again, in new versions, after raising these
 * by `versionOffset`, or to the time in ms if that is more; 0: not at all. Returns the number of routes. Changes that
 * are made between two of its transactions publish routes of their own, in the raised versions. Rejects once `signal`
 * is aborted.
 */
export async function republishDomains(
  { orm }: Database,
  versionOffset: number,
  signal?: AbortSignal,
): Promise<number> {
  let published = 0;
  for (let last: string | undefined = ''; last !== undefined; ) {
    signal?.throwIfAborted();
    const after: string = last;
    last = await ormTransaction(orm, async (em) => {
      const tx = connectionOf(em);
      await run(tx, lock);
      if (after === '' && versionOffset > 0) await run(tx, raiseVersions, [versionOffset]);
      const hostnames = (await run(tx, next, [after])).map(({ hostname }) => hostname);
      published += await publish(em, hostnames);
      return hostnames.at(-1);
    });
  }
  return published;
}

/** Publishes the current routes of some hostnames; returns how many of them an account has ever verified. */
export function republishHosts({ orm }: Database, hostnames: readonly string[]): Promise<number> {
  return ormTransaction(orm, async (em) => {
    await run(connectionOf(em), lock);
    return publish(em, hostnames);
  });
}

async function publish(em: EntityManager, hostnames: readonly string[]): Promise<number> {
  const domains = await em.find(DomainEntity, { state: { $ne: 'pending' }, hostname: { $in: [...hostnames] } });
  for (const domain of domains) await publishHost(em, domain, { failing: domain.state !== 'live' });
  const hosts = await run(connectionOf(em), removed, [hostnames]);
  for (const host of hosts) await publishHost(em, host, { removed: true });
  return domains.length + hosts.length;
}
