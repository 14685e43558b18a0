import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { raw } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { type Cursors, positionAfter } from '../../common/contract/cursors.ts';
import { failure } from '../../common/contract/errors.ts';
import { decodeId, encodeId, newUuid } from '../../common/contract/ids.ts';
import { DELIVERY_STATUS_BY_NAME, type DeliveryStatusName } from '../../common/contract/names.ts';
import { endPage, type PageById, pageOf } from '../../common/contract/paging.ts';
import { PAGE_LIMIT } from '../../common/contract/ranges.ts';
import { notifying } from '../../common/postgres/notifications.ts';
import { type Queryable, run, statement } from '../../common/postgres/sql.ts';
import {
  type Attempt,
  AttemptSchema,
  type Delivery,
  DeliverySchema,
  DeliveryStatus,
} from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { columnsOf, listed, type RowOf } from '../db/columns.ts';
import type { Database } from '../db/database.ts';
import { connectionOf } from '../db/orm-transaction.ts';
import { AttemptEntity, DeliveryEntity } from './entities.ts';

/** What a test event is called; nobody subscribes to it. An endpoint gets nothing else before it has answered one. */
export const TEST_EVENT = 'webhook.test';

type AttemptRow = RowOf<AttemptEntity>;

const ATTEMPT_COLUMNS = listed(columnsOf(AttemptEntity));

/**
 * Attempts that are shown with a delivery: the schedule has ten, and each time that it is sent again makes more. A page of
 * 100 deliveries then has some 2 MiB of answers at most.
 */
const SHOWN_ATTEMPTS = 20;

/** Index: webhook_attempts_pkey. The deliveries were found by their account. */
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

/** Index: webhook_deliveries_failed. */
const failedAgain = statement<{ id: string }>(
  'webhooks_resend_failed',
  `update webhook_deliveries set status = 'pending', attempts = 0, next_attempt_at = now()
   where endpoint_id = $1 and account_id = $2 and status = 'failed' and created_at >= $3 returning id`,
);

/** Index: webhook_endpoints_pkey. */
const makeDue = statement(
  'webhooks_make_due',
  `update webhook_endpoints set due_at = least(due_at, greatest(now(), attempt_after))
   where id = $1 and account_id = $2 returning ${notifying('webhooks')}`,
);

/** The name of each status that a list can be asked for. */
const LISTED: Readonly<Record<number, DeliveryStatusName>> = {
  [DeliveryStatus.PENDING]: 'pending',
  [DeliveryStatus.SUCCEEDED]: 'succeeded',
  [DeliveryStatus.FAILED]: 'failed',
};

/**
 * A page of an endpoint's deliveries, newest first. `accountId`, `endpointId`: UUIDs. Index: webhook_deliveries_listed,
 * or the one of the status.
 */
export async function listDeliveries(
  { orm, pool }: Database,
  accountId: string,
  { endpointId, status, page }: { endpointId: string; status: DeliveryStatus; page: PageById },
): Promise<{ deliveries: Delivery[]; nextCursor?: string }> {
  const { before, limit, offset, end } = page;
  const named = LISTED[status];
  const where = { accountId, endpointId, id: { $lt: before }, ...(named && { status: named }) };
  const { items, next } = end(
    await orm.em.fork().find(DeliveryEntity, where, { orderBy: { id: 'desc' }, limit, offset }),
  );
  return { deliveries: await withAttempts(pool, items), ...next };
}

/** One of the account's deliveries. `id`: as the caller named it. Index: webhook_deliveries_pkey. */
export async function findDelivery(em: EntityManager, accountId: string, id: string): Promise<DeliveryEntity> {
  const uuid = decodeId('dlv', id);
  const delivery = uuid === undefined ? null : await em.findOne(DeliveryEntity, { id: uuid, accountId });
  if (!delivery) throw failure('NOT_FOUND', 'This account has no such delivery.');
  return delivery;
}

/** A page of the attempts of a delivery that was found by its account, newest first. */
export async function listAttempts(
  on: Queryable,
  { id }: Pick<DeliveryEntity, 'id'>,
  asked: { readonly limit?: number | undefined; readonly cursor?: string | undefined },
  cursors: Cursors,
): Promise<{ attempts: Attempt[]; nextCursor?: string }> {
  const list = `attempts ${id}`;
  const { limit } = pageOf(asked, PAGE_LIMIT);
  const before = positionAfter(cursors, list, asked.cursor) ?? 'infinity';
  const read = await run(on, attemptsBefore, [id, before, limit + 1]);
  const { items, next } = endPage(read, limit, [cursors, list], ({ position }) => position);
  return { attempts: items.map(attemptMessage), ...next };
}

/** Makes a test event for an endpoint that is locked. `endpointId`: UUID. */
export async function addTestDelivery(em: EntityManager, accountId: string, endpointId: string): Promise<Delivery> {
  const timestamp = new Date().toISOString();
  const body = JSON.stringify({ type: TEST_EVENT, timestamp, data: { endpoint_id: encodeId('hook', endpointId) } });
  const [id, eventId] = [newUuid(), newUuid()];
  const made = em.create(DeliveryEntity, { id, endpointId, accountId, eventId, eventType: TEST_EVENT, body });
  await em.flush();
  await run(connectionOf(em), makeDue, [endpointId, accountId]);
  return one(await withAttempts(connectionOf(em), [made]));
}

/** Sends a delivery again, whose endpoint is locked: from the start of the schedule, whatever became of it before. */
export async function resend(
  em: EntityManager,
  accountId: string,
  { id, endpointId }: Pick<DeliveryEntity, 'id' | 'endpointId'>,
): Promise<Delivery> {
  const again = { status: 'pending', attempts: 0, nextAttemptAt: raw('now()') } as const;
  await em.nativeUpdate(DeliveryEntity, { id, accountId }, again);
  await run(connectionOf(em), makeDue, [endpointId, accountId]);
  return one(await withAttempts(connectionOf(em), await em.find(DeliveryEntity, { id, accountId })));
}

/** Sends again what failed of an endpoint that is locked; tells how many. `endpointId`: UUID. */
export async function resendFailed(tx: Queryable, accountId: string, endpointId: string, since: Date): Promise<number> {
  const sent = await run(tx, failedAgain, [endpointId, accountId, since]);
  if (sent.length > 0) await run(tx, makeDue, [endpointId, accountId]);
  return sent.length;
}

async function withAttempts(on: Queryable, deliveries: readonly DeliveryEntity[]): Promise<Delivery[]> {
  const ids = deliveries.map(({ id }) => id);
  const attempts = ids.length === 0 ? [] : await run(on, latestAttempts, [ids]);
  const of = Map.groupBy(attempts, ({ delivery_id }) => delivery_id);
  return deliveries.map((delivery) =>
    create(DeliverySchema, {
      id: encodeId('dlv', delivery.id),
      endpointId: encodeId('hook', delivery.endpointId),
      eventId: encodeId('evt', delivery.eventId),
      eventType: delivery.eventType,
      status: DELIVERY_STATUS_BY_NAME[delivery.status as DeliveryStatusName],
      attempts: (of.get(delivery.id) ?? []).map(attemptMessage),
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
  if (!delivery) throw failure('NOT_FOUND', 'This account has no such delivery.');
  return delivery;
}
