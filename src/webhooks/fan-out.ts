import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { decodeId } from '../../common/contract/ids.ts';
import type { Log, LogRecord, Subscription } from '../../common/log/log.ts';
import { EVENTS } from '../../common/log/topics.ts';
import { binaryArray } from '../../common/postgres/binary-array.ts';
import { promptStatement, run } from '../../common/postgres/sql.ts';
import { throttledFailures } from '../../common/runtime/throttled-report.ts';
import { notifying } from '../db/notifications.ts';

/** Records per poll: few, so that the first deliveries of a large batch do not wait for the last ones. */
const MAX_RECORDS = 500;
/** Records per statement, which locks the endpoints while it runs, and their size. */
const MAX_RECORDS_PER_STATEMENT = 1_000;
const MAX_BYTES_PER_STATEMENT = 4 * 2 ** 20;
/**
 * How long that statement may take, in ms: twenty times what 1,000 events for 50 endpoints take. A Postgres that
 * vanishes meanwhile ends no connection (see `PROMPT_MS`), and this member would keep its partitions.
 */
const FAN_OUT_MS = 20_000;
/** Those of the accounts $1 that have an enabled endpoint. Index: webhook_endpoints_of_account. */
const withEndpoint = promptStatement<{ account_id: string }>(
  'webhooks_accounts_with_endpoint',
  `select distinct account_id from webhook_endpoints where account_id = any($1::uuid[]) and disabled_reason is null`,
);

/**
 * One statement, so one transaction. It locks endpoints first, in order, so that disabling or releasing one happens
 * entirely before or after it. Events more than five minutes older than the endpoint are skipped: a new consumer group
 * reads all that the topic retains. An event has the time at which its transaction began, and that may take minutes. An
 * unverified endpoint does not become due, because only test events are sent to it. `is true` keeps the planner from
 * joining `inserted`, whose number it does not know: it compared each of 30,000 endpoints with each, which took minutes
 * and now takes a second. Indexes: webhook_endpoints_of_account, webhook_endpoints_pkey,
 * webhook_deliveries_endpoint_id_event_id_key. $1 ids, $2 accounts, $3 types, $4 times, $5 bodies.
 */
const fanOut = promptStatement<{ made: string }>(
  'webhooks_fan_out',
  `with event as materialized (
     select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::text[])
       as event (id, account_id, type, at, body)
   ), endpoint as materialized (
     select id, account_id, events, due_at, attempt_after, verified_at, created_at from webhook_endpoints
     where account_id = any($2::uuid[]) and disabled_reason is null
     order by id for no key update
   ), inserted as (
     insert into webhook_deliveries (id, endpoint_id, account_id, event_id, event_type, body)
     select uuidv7(), endpoint.id, endpoint.account_id, event.id, event.type, event.body
     from event join endpoint using (account_id)
     where event.type = any(endpoint.events) and event.at > endpoint.created_at - interval '5 minutes'
     order by event.id
     on conflict (endpoint_id, event_id) do nothing
     returning endpoint_id
   ), scheduled as (
     update webhook_endpoints e set due_at = greatest(now(), endpoint.attempt_after) from endpoint
     where e.id = endpoint.id and endpoint.verified_at is not null and coalesce(endpoint.due_at > now(), true)
       and (e.id in (select endpoint_id from inserted)) is true
   )
   select count(*) as made, case when count(*) > 0 then ${notifying('webhooks')} end from inserted`,
  FAN_OUT_MS,
);

/** An event. `id` and `account`: UUIDs; `at`: as ISO 8601; `data`: JSON in UTF-8. */
interface Event {
  readonly id: string;
  readonly account: string;
  readonly type: string;
  readonly at: string;
  readonly data: Uint8Array;
}

/**
 * Creates deliveries of events and notifies deliverers, as a member of the consumer group `signpost.webhooks`; any
 * number of processes may run. An event that is consumed again creates none.
 */
export function startFanOut({ pool, log, logger }: { pool: Pool; log: Log; logger: Logger }): Subscription {
  const reportFailure = throttledFailures((fields) =>
    logger.warn(fields, 'creating webhook deliveries failed; the events are retried'),
  );
  const handle = batched(async (records) => void (await fanOutRecords(pool, records, logger)));
  return log.consume({
    topic: EVENTS.name,
    group: 'signpost.webhooks',
    maxRecords: MAX_RECORDS,
    partitionsAtOnce: EVENTS.partitions,
    handle,
    onError: reportFailure,
  });
}

/**
 * Returns a handler that batches: the next statement handles all records that arrive while one runs. A statement per
 * partition would gain nothing: the events of an account are in all partitions, so the statements would wait for the
 * same endpoint locks.
 */
function batched(
  handle: (records: readonly LogRecord[]) => Promise<void>,
): (records: readonly LogRecord[]) => Promise<void> {
  const waiting: { records: readonly LogRecord[]; settle: (done: Promise<void>) => void }[] = [];
  let running = false;

  async function run(): Promise<void> {
    running = true;
    while (waiting.length > 0) {
      let [count, bytes] = [0, 0];
      const end = waiting.findIndex(({ records }, index) => {
        count += records.length;
        for (const { value } of records) bytes += value?.length ?? 0;
        return index > 0 && (count > MAX_RECORDS_PER_STATEMENT || bytes > MAX_BYTES_PER_STATEMENT);
      });
      const batch = waiting.splice(0, end === -1 ? waiting.length : end);
      const done = handle(batch.flatMap(({ records }) => records));
      for (const { settle } of batch) settle(done);
      await done.catch(() => undefined);
    }
    running = false;
  }

  return (records) => {
    const settled = new Promise<void>((resolve) => waiting.push({ records, settle: resolve }));
    if (!running) void run();
    return settled;
  };
}

/** Creates the deliveries of some records; returns their number. */
export async function fanOutRecords(pool: Pool, records: readonly LogRecord[], logger: Logger): Promise<number> {
  const events: Event[] = [];
  const skipped: LogRecord[] = [];
  for (const record of records) {
    const event = readEvent(record);
    if (event) events.push(event);
    else skipped.push(record);
  }
  const [first] = skipped;
  // Only cores write this topic, through `cloudEvent`: an unreadable record is a defect, which must not block others.
  if (first) {
    const { key, partition, offset } = first;
    logger.error(
      { records: skipped.length, key, partition, offset: `${offset}` },
      'a record that is not an event was skipped',
    );
  }
  const awaited = await eventsOfEndpoints(pool, events);
  if (awaited.length === 0) return 0;
  const column = (key: 'id' | 'account' | 'type' | 'at') => awaited.map((event) => event[key]);
  const bodies = binaryArray('text', awaited.map(bodyOf));
  const rows = await run(pool, fanOut, [column('id'), column('account'), column('type'), column('at'), bodies]);
  return Number(rows[0]?.made ?? 0);
}

/**
 * The events of accounts that have an enabled endpoint. What is created or enabled after this statement has begun has
 * missed the events anyway. Most accounts have no endpoint: sending their events to Postgres took 12 µs of CPU each,
 * half of it there, and asking takes 2.
 */
async function eventsOfEndpoints(pool: Pool, events: readonly Event[]): Promise<Event[]> {
  if (events.length === 0) return [];
  const rows = await run(pool, withEndpoint, [[...new Set(events.map(({ account }) => account))]]);
  const accounts = new Set(rows.map(({ account_id }) => account_id));
  return events.filter(({ account }) => accounts.has(account));
}

/** The request body of an event's deliveries: its type, time and unchanged data. Source: docs/contract.md, "Events". */
function bodyOf({ type, at, data }: Event): string {
  const text = Buffer.from(data).toString('utf8');
  return `{"type":${JSON.stringify(type)},"timestamp":${JSON.stringify(at)},"data":${text}}`;
}

/** Decodes an event; undefined if the record is not one. */
function readEvent({ headers, value }: LogRecord): Event | undefined {
  const { ce_id = '', ce_type: type, ce_source = '', ce_time: at } = headers;
  const id = decodeId('evt', ce_id);
  const account = decodeId('acct', /^\/accounts\/([^/]+)$/.exec(ce_source)?.[1] ?? '');
  if (!id || !account || !type || !at || Number.isNaN(Date.parse(at)) || !value) return undefined;
  return { id, account, type, at, data: value };
}
