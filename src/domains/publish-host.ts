import { create, toBinary } from '@bufbuild/protobuf';
import type { EntityManager } from '@mikro-orm/postgresql';
import { encodeId } from '../../common/contract/ids.ts';
import { ROUTES } from '../../common/log/topics.ts';
import { first, statement } from '../../common/postgres/sql.ts';
import { RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { connectionOf } from '../db/orm-transaction.ts';
import { addToOutbox } from '../events/outbox.ts';
import type { DomainEntity } from './domain.ts';
import { VerifiedHostnameEntity } from './verified-hostname.ts';

const draw = statement<{ version: string }>('domains_draw_version', `select nextval('domain_versions') as version`);

/**
 * Tells gateways how a domain that was verified serves from now on, in the transaction that makes it so; the caller
 * holds the domain's row locked. `failing`: it does not resolve to the platform, not yet or no longer. Returns the
 * version that was drawn.
 */
export async function publishHost(
  em: EntityManager,
  { hostname, accountId }: Pick<DomainEntity, 'hostname' | 'accountId'>,
  how: { readonly failing?: boolean; readonly removed?: boolean },
): Promise<number> {
  // The row outlives the domain: the hostname serves no other account's codes.
  await em.upsert(VerifiedHostnameEntity, { hostname, accountId });
  const tx = connectionOf(em);
  const version = Number((await first(tx, draw))?.version);
  const value = { hostname, accountId: encodeId('acct', accountId), ...how };
  const route = create(RouteSchema, { version: BigInt(version), entry: { case: 'host', value } });
  await addToOutbox(tx, [{ topic: ROUTES.name, key: `host:${hostname}`, value: toBinary(RouteSchema, route) }]);
  return version;
}
