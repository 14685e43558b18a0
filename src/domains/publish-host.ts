import { create, toBinary } from '@bufbuild/protobuf';
import { encodeId } from '../../common/contract/ids.ts';
import { ROUTES } from '../../common/log/topics.ts';
import { first, type Queryable, run, statement } from '../../common/postgres/sql.ts';
import { RouteSchema } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { addToOutbox } from '../events/outbox.ts';
import type { DomainEntity } from './domain.ts';

const draw = statement<{ version: string }>('domains_draw_version', `select nextval('domain_versions') as version`);

/** Index: verified_hostnames_pkey. The row outlives the domain: the hostname serves no other account's codes. */
const keep = statement(
  'domains_keep_hostname',
  `insert into verified_hostnames (hostname, account_id) values ($1, $2)
   on conflict (hostname) do update set account_id = excluded.account_id`,
);

/**
 * Tells gateways how a domain that was verified serves from now on, in the transaction that makes it so; the caller
 * holds the domain's row locked. `failing`: it does not resolve to the platform, not yet or no longer. Returns the
 * version that was drawn.
 */
export async function publishHost(
  tx: Queryable,
  { hostname, accountId }: Pick<DomainEntity, 'hostname' | 'accountId'>,
  how: { readonly failing?: boolean; readonly removed?: boolean },
): Promise<number> {
  await run(tx, keep, [hostname, accountId]);
  const version = Number((await first(tx, draw))?.version);
  const value = { hostname, accountId: encodeId('acct', accountId), ...how };
  const route = create(RouteSchema, { version: BigInt(version), entry: { case: 'host', value } });
  await addToOutbox(tx, [{ topic: ROUTES.name, key: `host:${hostname}`, value: toBinary(RouteSchema, route) }]);
  return version;
}
