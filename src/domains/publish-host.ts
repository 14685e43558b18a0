import { create, toBinary } from '@bufbuild/protobuf';
import type { EntityManager } from '@mikro-orm/postgresql';
import { encodeId } from '../../common/contract/ids.ts';
import { routeKey } from '../../common/contract/route.ts';
import { ROUTES } from '../../common/log/topics.ts';
import { first, statement } from '../../common/postgres/sql.ts';
import { RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { connectionOf } from '../db/orm-transaction.ts';
import { addToOutbox } from '../events/outbox.ts';
import type { DomainEntity } from './domain.ts';
import { VerifiedHostnameEntity } from './verified-hostname.ts';

const nextVersion = statement<{ version: string }>(
  'domains_next_version',
  `select nextval('domain_versions') as version`,
);

/**
 * Publishes the route of a verified domain to the gateways, in the transaction that changes the domain; the caller
 * holds the lock on the domain's row. `failing`: it does not resolve to the platform, not yet or no longer. The
 * versions of routes are from one sequence for all accounts, so that the newest one of a hostname has the highest.
 */
export async function publishHost(
  em: EntityManager,
  { hostname, accountId }: Pick<DomainEntity, 'hostname' | 'accountId'>,
  status: { readonly failing?: boolean; readonly removed?: boolean },
): Promise<void> {
  // The row outlives the domain, so that the hostname never serves another account's codes.
  await em.upsert(VerifiedHostnameEntity, { hostname, accountId });
  const tx = connectionOf(em);
  const { version } = (await first(tx, nextVersion)) as { version: string };
  const value = { hostname, accountId: encodeId('acct', accountId), ...status };
  const route = create(RouteSchema, { version: BigInt(version), entry: { case: 'host', value } });
  await addToOutbox(tx, [{ topic: ROUTES.name, key: routeKey('host', hostname), value: toBinary(RouteSchema, route) }]);
}
