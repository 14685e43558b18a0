import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { raw } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { failure } from '../../../common/contract/errors.ts';
import { EVENT_TYPES, type EventType } from '../../../common/contract/event-types.ts';
import { decodeId, encodeId } from '../../../common/contract/ids.ts';
import { expectBelowLimit } from '../../../common/contract/limits.ts';
import { type Queryable, run, statement } from '../../../common/postgres/sql.ts';
import { type Endpoint, EndpointSchema } from '../../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { lockAccount } from '../../access/lock-account.ts';
import { notFound } from '../../calls/not-found.ts';
import type { Database } from '../../db/database.ts';
import { notifying } from '../../db/notifications.ts';
import { connectionOf } from '../../db/orm-transaction.ts';
import { EndpointEntity } from '../entities.ts';

/** Index: webhook_endpoints_pkey. The ORM has no lock mode that allows concurrent inserts of deliveries. */
const lock = statement(
  'webhooks_lock_endpoint',
  'select from webhook_endpoints where id = $1 and account_id = $2 for no key update',
);

/** Adds an endpoint, or fails with LIMIT_REACHED. `accountId` and `id`, here and below: UUIDs. */
export async function insertEndpoint(
  em: EntityManager,
  endpoint: Pick<EndpointEntity, 'id' | 'accountId' | 'url' | 'events' | 'secret'>,
): Promise<EndpointEntity> {
  const { accountId } = endpoint;
  await lockAccount(connectionOf(em), accountId);
  expectBelowLimit('webhook endpoints', await em.count(EndpointEntity, { accountId, deleted: false }));
  const added = em.create(EndpointEntity, endpoint);
  await em.flush();
  return added;
}

/**
 * Counts no more than it takes to see that there are many. Indexes: webhook_endpoints_of_account,
 * webhook_deliveries_failed.
 */
const countFailed = statement<{ id: string; failed: number }>(
  'webhooks_count_failed',
  `select e.id, (
     select count(*)::integer from (
       select from webhook_deliveries where endpoint_id = e.id and status = 'failed' limit 100
     ) failed
   ) as failed
   from webhook_endpoints e where e.account_id = $1 and not e.deleted`,
);

/** Returns the account's endpoints, newest first, with their failed deliveries. Index: webhook_endpoints_of_account. */
export async function listEndpoints({ orm, pool }: Database, accountId: string): Promise<Endpoint[]> {
  const counts = await run(pool, countFailed, [accountId]);
  const failed = new Map(counts.map((row) => [row.id, row.failed]));
  const where = { accountId, deleted: false };
  const endpoints = await orm.em.fork().find(EndpointEntity, where, { orderBy: { id: 'desc' } });
  return endpoints.map((each) => ({ ...endpointMessage(each), failedDeliveries: failed.get(each.id) ?? 0 }));
}

/**
 * Locks an endpoint until the transaction ends, and returns it, or fails with NOT_FOUND. A transaction locks an
 * endpoint before it changes the endpoint or its deliveries, which prevents deadlocks.
 */
export async function lockEndpoint(em: EntityManager, accountId: string, id: string): Promise<EndpointEntity> {
  // Locked first and read afterwards, to see what the previous holder of the lock committed.
  await lockEndpointRow(connectionOf(em), accountId, id);
  return findEndpoint(em, accountId, id);
}

/** Locks an endpoint until the transaction ends, also one that is deleted and has deliveries left. */
export async function lockEndpointRow(tx: Queryable, accountId: string, id: string): Promise<void> {
  await run(tx, lock, [id, accountId]);
}

/** Returns one of the account's endpoints, or fails with NOT_FOUND. */
export async function findEndpoint(em: EntityManager, accountId: string, id: string): Promise<EndpointEntity> {
  return expectFound((await em.findOne(EndpointEntity, { id, accountId, deleted: false })) ?? undefined);
}

const wake = statement('webhooks_wake', `select ${notifying('webhooks')}`);

/** How many secrets before the former one also sign: with it and the new one that makes five signatures. */
const MAX_OLDER_SECRETS = 3;

/** Replaces the encrypted secret of an endpoint. Requests are also signed with the former one for 24 hours. */
export async function rotateSecret(em: EntityManager, accountId: string, id: string, secret: Buffer): Promise<void> {
  const older = (former: string, older: string) =>
    raw(`case when former_until > now() then (${former} || ${older})[1:${MAX_OLDER_SECRETS}] else '{}' end`);
  const changes = {
    secret,
    formerSecret: raw('secret'),
    formerUntil: raw(`now() + interval '24 hours'`),
    olderSecrets: older('former_secret', 'older_secrets'),
    olderUntil: older('former_until', 'older_until'),
  };
  await em.nativeUpdate(EndpointEntity, { id, accountId }, changes);
  // Deliveries may have waited for a secret that cores can open.
  await run(connectionOf(em), wake);
}

/** Decodes the id of an endpoint (`hook_…`) to its UUID, or fails with NOT_FOUND. */
export function endpointUuid(id: string): string {
  return expectFound(decodeId('hook', id));
}

/** Validates the names of event types, or fails with INVALID_FIELD. */
export function readEvents(names: readonly string[]): EventType[] {
  return names.map((name) => {
    const type = EVENT_TYPES.find((known) => known === name);
    if (!type) throw failure('INVALID_FIELD', `events: each must be one of ${EVENT_TYPES.join(', ')}.`);
    return type;
  });
}

export function endpointMessage(endpoint: EndpointEntity): Endpoint {
  const { id, url, events, disabledReason, verifiedAt, failingSince, createdAt } = endpoint;
  return create(EndpointSchema, {
    id: encodeId('hook', id),
    url,
    events,
    enabled: isEnabled(endpoint),
    disabledReason: disabledReason ?? '',
    createdAt: timestampFromDate(createdAt),
    ...(verifiedAt && { verifiedAt: timestampFromDate(verifiedAt) }),
    ...(failingSince && { failingSince: timestampFromDate(failingSince) }),
  });
}

export function isEnabled({ disabledReason }: EndpointEntity): boolean {
  return disabledReason == null;
}

function expectFound<Value>(value: Value | undefined): Value {
  if (value === undefined) throw notFound('webhook endpoint');
  return value;
}
