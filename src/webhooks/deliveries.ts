import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { raw } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { isoTime } from '../../common/contract/code-json.ts';
import { decodeId, encodeId, lowestUuidAt, newUuid } from '../../common/contract/ids.ts';
import { DELIVERY_STATUS_BY_NAME, type DeliveryStatusName } from '../../common/contract/names.ts';
import { PAGE_LIMIT, SHOWN_ATTEMPTS } from '../../common/contract/ranges.ts';
import { byIndex, first, type Queryable, run, statement } from '../../common/postgres/sql.ts';
import {
  type Attempt,
  AttemptSchema,
  type Delivery,
  DeliverySchema,
  DeliveryStatus,
} from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { type Cursors, positionAfter } from '../calls/cursors.ts';
import { notFound } from '../calls/not-found.ts';
import { endPage, type PageById, pageOf } from '../calls/paging.ts';
import { postgresNow } from '../db/clock.ts';
import { columnsOf, listed, type RowOf } from '../db/columns.ts';
import type { Database } from '../db/database.ts';
import { notifying } from '../db/notifications.ts';
import { connectionOf, ormTransaction } from '../db/orm-transaction.ts';
import { AttemptEntity, DeliveryEntity, EndpointEntity, TEST_EVENT } from './entities.ts';

type AttemptRow = RowOf<AttemptEntity>;

const ATTEMPT_COLUMNS = listed(columnsOf(AttemptEntity));

/** Deliveries are read in the same snapshot as their attempts. */
const ONE_SNAPSHOT = 'set transaction isolation level repeatable read, read only';

/** Index: webhook_attempts_pkey. The account was checked when the deliveries were read. */
const latestAttempts = statement<AttemptRow>(
  'webhooks_latest_attempts',
  `select latest.* from unnest($1::uuid[]) as listed (id), lateral (
     select ${ATTEMPT_COLUMNS} from webhook_attempts
     where delivery_id = listed.id order by at desc limit ${SHOWN_ATTEMPTS}
   ) latest order by delivery_id, at`,
);

/** Index: webhook_attempts_pkey. */
const attemptsBefore = statement<AttemptRow & { position: string }>(
  'webhooks_attempts_before',
  `select ${ATTEMPT_COLUMNS}, at::text as position from webhook_attempts
   where delivery_id = $1 and at < $2::timestamptz order by at desc limit $3`,
);

/** Maximum deliveries resent by one call: it locks the endpoint, and events of all accounts wait for that lock. */
const MAX_RESENT = 10_000;

/**
 * How much earlier than `created_at` the time of an id may be, in ms: ids of test events are made with a core's clock.
 */
const CLOCK_SKEW_MS = 300_000;

/**
 * Failed deliveries with an id of at least $4, oldest first. A delivery that expires meanwhile is skipped. Indexes:
 * webhook_deliveries_failed or webhook_deliveries_listed, forced by `byIndex`, and webhook_deliveries_pkey. $1 is an
 * array of one endpoint, which keeps the planner from ordering by id alone: it would read the deliveries of all
 * endpoints by their ids.
 */
const resendOldestFailed = statement<{ deliveries: number; more: boolean }>(
  'webhooks_resend_failed',
  `with chosen as materialized (
     select id from webhook_deliveries
     where endpoint_id = any($1::uuid[]) and account_id = $2 and status = 'failed' and created_at >= $3 and id >= $4
     order by endpoint_id desc, id limit ${MAX_RESENT}
   ), resent as (
     update webhook_deliveries set status = 'pending', attempts = 0, next_attempt_at = now()
     where id = any(array(select id from chosen)) returning id
   )
   select (select count(*)::integer from resent) as deliveries, (select count(*) = ${MAX_RESENT} from chosen) as more`,
);

/** Index: webhook_endpoints_pkey. */
const makeDue = statement(
  'webhooks_make_due',
  `update webhook_endpoints set due_at = least(due_at, greatest(now(), attempt_after))
   where id = $1 and account_id = $2 returning ${notifying('webhooks')}`,
);

/** The statuses that lists can be filtered by. */
const STATUS_FILTERS: Readonly<Record<number, DeliveryStatusName>> = {
  [DeliveryStatus.PENDING]: 'pending',
  [DeliveryStatus.SUCCEEDED]: 'succeeded',
  [DeliveryStatus.FAILED]: 'failed',
};

/**
 * Returns a page of an endpoint's deliveries, newest first, with the attempts that their status is the result of.
 * `accountId`, `endpointId`: UUIDs. Index: webhook_deliveries_listed, or the one of the status.
 */
export async function listDeliveries(
  { orm }: Database,
  accountId: string,
  { endpointId, status, page }: { endpointId: string; status: DeliveryStatus; page: PageById },
): Promise<{ deliveries: Delivery[]; nextCursor?: string }> {
  const { before, limit, offset, end } = page;
  const statusName = STATUS_FILTERS[status];
  const where = { accountId, endpointId, id: { $lt: before }, ...(statusName && { status: statusName }) };
  return ormTransaction(orm, async (em, tx) => {
    await tx.query(ONE_SNAPSHOT);
    const { items, next } = end(await em.find(DeliveryEntity, where, { orderBy: { id: 'desc' }, limit, offset }));
    return { deliveries: await withAttempts(tx, items), ...next };
  });
}

/**
 * Returns one of the account's deliveries, or fails with NOT_FOUND, also if its endpoint is deleted. `id`: `dlv_…`.
 * Indexes: webhook_deliveries_pkey, webhook_endpoints_pkey.
 */
export async function findDelivery(em: EntityManager, accountId: string, id: string): Promise<DeliveryEntity> {
  const uuid = decodeId('dlv', id);
  const delivery =
    uuid === undefined ? null : await em.findOne(DeliveryEntity, { id: uuid, accountId }, { populate: ['body'] });
  const hasEndpoint =
    delivery && (await em.count(EndpointEntity, { id: delivery.endpointId, accountId, deleted: false })) > 0;
  if (!hasEndpoint) throw notFound('delivery');
  return delivery;
}

/** Returns one of the account's deliveries and a page of its attempts, newest first, or fails with NOT_FOUND. */
export async function listAttempts(
  { orm }: Database,
  accountId: string,
  { deliveryId, page }: { deliveryId: string; page: { limit?: number | undefined; cursor?: string | undefined } },
  cursors: Cursors,
): Promise<{ delivery: Delivery; body: string; attempts: Attempt[]; nextCursor?: string }> {
  return ormTransaction(orm, async (em, tx) => {
    await tx.query(ONE_SNAPSHOT);
    const delivery = await findDelivery(em, accountId, deliveryId);
    const list = `attempts ${delivery.id}`;
    const { limit } = pageOf(page, PAGE_LIMIT);
    const before = positionAfter(cursors, list, page.cursor) ?? 'infinity';
    const rows = await run(tx, attemptsBefore, [delivery.id, before, limit + 1]);
    const { items, next } = endPage(rows, limit, [cursors, list], ({ position }) => position);
    const message = one(await withAttempts(tx, [delivery]));
    return { delivery: message, body: delivery.body, attempts: items.map(attemptMessage), ...next };
  });
}

/** Adds a delivery of a test event to an endpoint, which the caller has locked. `endpointId`: UUID. */
export async function addTestDelivery(em: EntityManager, accountId: string, endpointId: string): Promise<Delivery> {
  const timestamp = isoTime(await postgresNow(connectionOf(em)));
  const body = JSON.stringify({ type: TEST_EVENT, timestamp, data: { endpoint_id: encodeId('hook', endpointId) } });
  const [id, eventId] = [newUuid(), newUuid()];
  const added = em.create(DeliveryEntity, { id, endpointId, accountId, eventId, eventType: TEST_EVENT, body });
  await em.flush();
  await run(connectionOf(em), makeDue, [endpointId, accountId]);
  return one(await withAttempts(connectionOf(em), [added]));
}

/** Makes a delivery pending from the start of the schedule, whatever its status. The caller has locked its endpoint. */
export async function resend(
  em: EntityManager,
  accountId: string,
  { id, endpointId }: Pick<DeliveryEntity, 'id' | 'endpointId'>,
): Promise<Delivery> {
  const restarted = { status: 'pending', attempts: 0, nextAttemptAt: raw('now()') } as const;
  await em.nativeUpdate(DeliveryEntity, { id, accountId }, restarted);
  await run(connectionOf(em), makeDue, [endpointId, accountId]);
  return one(await withAttempts(connectionOf(em), await em.find(DeliveryEntity, { id, accountId })));
}

/**
 * Makes up to 10,000 deliveries of an endpoint pending again that failed and were created since a time, the oldest
 * first. The caller has locked the endpoint. `endpointId`: UUID. Returns their number, and whether more may be left.
 */
export async function resendFailed(
  tx: Queryable,
  accountId: string,
  endpointId: string,
  since: Date,
): Promise<{ deliveries: number; more: boolean }> {
  const oldest = lowestUuidAt(since.getTime() - CLOCK_SKEW_MS);
  await run(tx, byIndex);
  const resent = await first(tx, resendOldestFailed, [[endpointId], accountId, since, oldest]);
  const { deliveries, more } = resent ?? { deliveries: 0, more: false };
  if (deliveries > 0) await run(tx, makeDue, [endpointId, accountId]);
  return { deliveries, more };
}

async function withAttempts(on: Queryable, deliveries: readonly DeliveryEntity[]): Promise<Delivery[]> {
  const ids = deliveries.map(({ id }) => id);
  const attempts = ids.length === 0 ? [] : await run(on, latestAttempts, [ids]);
  const byDelivery = Map.groupBy(attempts, ({ delivery_id }) => delivery_id);
  return deliveries.map((delivery) =>
    create(DeliverySchema, {
      id: encodeId('dlv', delivery.id),
      endpointId: encodeId('hook', delivery.endpointId),
      eventId: encodeId('evt', delivery.eventId),
      eventType: delivery.eventType,
      status: DELIVERY_STATUS_BY_NAME[delivery.status as DeliveryStatusName],
      attempts: (byDelivery.get(delivery.id) ?? []).map(attemptMessage),
      ...(delivery.nextAttemptAt ? { nextAttemptAt: timestampFromDate(delivery.nextAttemptAt) } : {}),
      createdAt: timestampFromDate(delivery.createdAt),
    }),
  );
}

function attemptMessage({ at, status, latency_ms, response }: AttemptRow): Attempt {
  return create(AttemptSchema, { at: timestampFromDate(at), status: status ?? 0, latencyMs: latency_ms, response });
}

function one(deliveries: readonly Delivery[]): Delivery {
  const [delivery] = deliveries;
  // Its endpoint was locked when it was found, and a deletion waits for that lock.
  if (!delivery) throw notFound('delivery');
  return delivery;
}
