import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type Cursors, positionAfter } from '../../common/contract/cursors.ts';
import { failure } from '../../common/contract/errors.ts';
import { decodeId, encodeId, newUuid } from '../../common/contract/ids.ts';
import { DELIVERY_STATUS_BY_NAME, type DeliveryStatusName } from '../../common/contract/names.ts';
import { endPage, PAGE, type PageById, pageOf } from '../../common/contract/paging.ts';
import { first, type Queryable, run, type Statement, statement } from '../../common/postgres/sql.ts';
import {
  type Attempt,
  AttemptSchema,
  type Delivery,
  DeliverySchema,
  DeliveryStatus,
} from '../../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';

/** What a test event is called; nobody subscribes to it. An endpoint gets nothing else before it has answered one. */
export const TEST_EVENT = 'webhook.test';

interface DeliveryRow {
  id: string;
  endpoint_id: string;
  event_id: string;
  event_type: string;
  status: DeliveryStatusName;
  next_attempt_at: Date | null;
  created_at: Date;
}

interface AttemptRow {
  delivery_id: string;
  at: Date;
  status: number | null;
  latency_ms: number;
  response: string;
}

const COLUMNS = 'id, endpoint_id, event_id, event_type, status, next_attempt_at, created_at';

/** Index: webhook_deliveries_listed, or the one of the status. */
function list(name: string, condition: string): Statement<DeliveryRow> {
  return statement(
    `webhooks_list_${name}`,
    `select ${COLUMNS} from webhook_deliveries where account_id = $1 and endpoint_id = $2 and id < $3 ${condition}
     order by id desc limit $4 offset $5`,
  );
}

// The status stands in the text: as a parameter it would keep the planner from partial indexes.
const LISTS = {
  [DeliveryStatus.UNSPECIFIED]: list('deliveries', ''),
  [DeliveryStatus.PENDING]: list('pending', `and status = 'pending'`),
  [DeliveryStatus.SUCCEEDED]: list('succeeded', `and status = 'succeeded'`),
  [DeliveryStatus.FAILED]: list('failed', `and status = 'failed'`),
} as const;

/**
 * Attempts that are shown with a delivery: the schedule has ten, and each time that it is sent again makes more. A page of
 * 100 deliveries then has some 2 MiB of answers at most.
 */
const SHOWN_ATTEMPTS = 20;

/** Index: webhook_attempts_pkey. The deliveries were found by their account. */
const latestAttempts = statement<AttemptRow>(
  'webhooks_latest_attempts',
  `select latest.* from unnest($1::uuid[]) as listed (id), lateral (
     select delivery_id, at, status, latency_ms, response from webhook_attempts
     where delivery_id = listed.id order by at desc limit ${SHOWN_ATTEMPTS}
   ) latest order by delivery_id, at`,
);

/** Index: webhook_attempts_pkey. */
const attemptsBefore = statement<AttemptRow & { position: string }>(
  'webhooks_attempts_before',
  `select delivery_id, at, status, latency_ms, response, at::text as position from webhook_attempts
   where delivery_id = $1 and at < $2::timestamptz order by at desc limit $3`,
);

/** Index: webhook_deliveries_pkey. */
const deliveryById = statement<DeliveryRow>(
  'webhooks_delivery',
  `select ${COLUMNS} from webhook_deliveries where id = $1 and account_id = $2`,
);

const insertTest = statement<DeliveryRow>(
  'webhooks_insert_test',
  `insert into webhook_deliveries (id, endpoint_id, account_id, event_id, event_type, body)
   values ($1, $2, $3, $4, '${TEST_EVENT}', $5) returning ${COLUMNS}`,
);

/** Index: webhook_deliveries_pkey. From the start of the schedule, whatever became of it before. */
const again = statement<DeliveryRow>(
  'webhooks_resend',
  `update webhook_deliveries set status = 'pending', attempts = 0, next_attempt_at = now()
   where id = $1 and account_id = $2 returning ${COLUMNS}`,
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
   where id = $1 and account_id = $2`,
);

/** A page of an endpoint's deliveries, newest first. `account`, `endpoint`: UUIDs. */
export async function listDeliveries(
  on: Queryable,
  account: string,
  { endpoint, status, page }: { endpoint: string; status: DeliveryStatus; page: PageById },
): Promise<{ deliveries: Delivery[]; nextCursor?: string }> {
  const { before, limit, offset, end } = page;
  const list = LISTS[status as keyof typeof LISTS];
  const { items, next } = end(await run(on, list, [account, endpoint, before, limit, offset]));
  return { deliveries: await withAttempts(on, items), ...next };
}

/** One of the account's deliveries. `id`: as the caller named it. */
export async function findDelivery(on: Queryable, account: string, id: string): Promise<DeliveryRow> {
  const uuid = decodeId('dlv', id);
  const row = uuid === undefined ? undefined : await first(on, deliveryById, [uuid, account]);
  if (!row) throw failure('NOT_FOUND', 'This account has no such delivery.');
  return row;
}

/** A page of the attempts of a delivery that was found by its account, newest first. */
export async function listAttempts(
  on: Queryable,
  { id }: DeliveryRow,
  asked: { readonly limit?: number | undefined; readonly cursor?: string | undefined },
  cursors: Cursors,
): Promise<{ attempts: Attempt[]; nextCursor?: string }> {
  const list = `attempts ${id}`;
  const { limit } = pageOf(asked, PAGE);
  const before = positionAfter(cursors, list, asked.cursor) ?? 'infinity';
  const read = await run(on, attemptsBefore, [id, before, limit + 1]);
  const { items, next } = endPage(read, limit, [cursors, list], ({ position }) => position);
  return { attempts: items.map(attemptMessage), ...next };
}

/** Makes a test event for an endpoint that is locked. `endpoint`: UUID. */
export async function addTestDelivery(tx: Queryable, account: string, endpoint: string): Promise<Delivery> {
  const timestamp = new Date().toISOString();
  const body = JSON.stringify({ type: TEST_EVENT, timestamp, data: { endpoint_id: encodeId('hook', endpoint) } });
  const made = await run(tx, insertTest, [newUuid(), endpoint, account, newUuid(), body]);
  await run(tx, makeDue, [endpoint, account]);
  return one(await withAttempts(tx, made));
}

/** Sends a delivery again, whose endpoint is locked. */
export async function resend(tx: Queryable, account: string, { id, endpoint_id }: DeliveryRow): Promise<Delivery> {
  const sent = await run(tx, again, [id, account]);
  await run(tx, makeDue, [endpoint_id, account]);
  return one(await withAttempts(tx, sent));
}

/** Sends again what failed of an endpoint that is locked; tells how many. `endpoint`: UUID. */
export async function resendFailed(tx: Queryable, account: string, endpoint: string, since: Date): Promise<number> {
  const sent = await run(tx, failedAgain, [endpoint, account, since]);
  if (sent.length > 0) await run(tx, makeDue, [endpoint, account]);
  return sent.length;
}

async function withAttempts(on: Queryable, rows: readonly DeliveryRow[]): Promise<Delivery[]> {
  const attempts = rows.length === 0 ? [] : await run(on, latestAttempts, [rows.map(({ id }) => id)]);
  const of = Map.groupBy(attempts, ({ delivery_id }) => delivery_id);
  return rows.map((row) =>
    create(DeliverySchema, {
      id: encodeId('dlv', row.id),
      endpointId: encodeId('hook', row.endpoint_id),
      eventId: encodeId('evt', row.event_id),
      eventType: row.event_type,
      status: DELIVERY_STATUS_BY_NAME[row.status],
      attempts: (of.get(row.id) ?? []).map(attemptMessage),
      ...(row.next_attempt_at ? { nextAttemptAt: timestampFromDate(row.next_attempt_at) } : {}),
      createdAt: timestampFromDate(row.created_at),
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
