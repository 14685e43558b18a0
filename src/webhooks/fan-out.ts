import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { decodeId } from '../../common/contract/ids.ts';
import type { Log, LogRecord, Subscription } from '../../common/log/log.ts';
import { EVENTS } from '../../common/log/topics.ts';
import { notifying } from '../../common/postgres/notifications.ts';
import { run, statement } from '../../common/postgres/sql.ts';

/** Small, so that the first deliveries of many do not wait for the last ones. */
const POLL = 500;
/** In one statement, which keeps others from the endpoints meanwhile. */
const AT_ONCE = 1_000;

/**
 * One statement, so one transaction. Endpoints are locked first, in order: whoever disables or releases one comes
 * before or after all of it. An event that is older than the endpoint (by more than clocks may differ) was not meant
 * for it: a group that starts anew reads all that the topic keeps. One that has not answered its test event yet is not
 * due for it. Indexes: webhook_endpoints_of_account,
 * webhook_deliveries_endpoint_id_event_id_key. $1 ids, $2 accounts, $3 types, $4 times, $5 bodies.
 */
const fanOut = statement<{ made: string }>(
  'webhooks_fan_out',
  `with event as materialized (
     select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::text[])
       as event (id, account_id, type, at, body)
   ), endpoint as materialized (
     select id, account_id, events, due_at, attempt_after, verified_at, created_at from webhook_endpoints
     where account_id = any($2::uuid[]) and disabled_reason is null
     order by id for no key update
   ), made as (
     insert into webhook_deliveries (id, endpoint_id, account_id, event_id, event_type, body)
     select uuidv7(), endpoint.id, endpoint.account_id, event.id, event.type, event.body
     from event join endpoint using (account_id)
     where event.type = any(endpoint.events) and event.at > endpoint.created_at - interval '1 minute'
     order by event.id
     on conflict (endpoint_id, event_id) do nothing
     returning endpoint_id
   ), told as (
     update webhook_endpoints e set due_at = greatest(now(), endpoint.attempt_after) from endpoint
     where e.id = endpoint.id and endpoint.verified_at is not null and coalesce(endpoint.due_at > now(), true)
       and e.id in (select endpoint_id from made)
   )
   select count(*) as made, case when count(*) > 0 then ${notifying('webhooks')} end from made`,
);

/** An event as endpoints get it. Ids: UUIDs. */
interface Event {
  readonly id: string;
  readonly account: string;
  readonly type: string;
  readonly at: string;
  readonly body: string;
}

/**
 * Makes deliveries of events, as one member of the group `signpost.webhooks`; any number may run. An event that comes
 * again makes none. Deliverers are notified.
 */
export function startFanOut({ pool, log, logger }: { pool: Pool; log: Log; logger: Logger }): Subscription {
  const handle = together(async (records) => void (await fanOutRecords(pool, records, logger)));
  return log.consume({
    topic: EVENTS.name,
    group: 'signpost.webhooks',
    maxRecords: POLL,
    partitionsAtOnce: EVENTS.partitions,
    handle,
    onError: (error) => logger.warn({ err: error }, 'events wait to become deliveries'),
  });
}

/**
 * Handles what comes while a statement runs together in the next one. Partitions would only wait for one another: the
 * events of an account are in all of them, and its endpoints are locked once.
 */
function together(
  handle: (records: readonly LogRecord[]) => Promise<void>,
): (records: readonly LogRecord[]) => Promise<void> {
  const waiting: { records: readonly LogRecord[]; settle: (done: Promise<void>) => void }[] = [];
  let running = false;

  async function run(): Promise<void> {
    running = true;
    while (waiting.length > 0) {
      let count = 0;
      const end = waiting.findIndex(({ records }, index) => {
        count += records.length;
        return index > 0 && count > AT_ONCE;
      });
      const taken = waiting.splice(0, end === -1 ? waiting.length : end);
      const done = handle(taken.flatMap(({ records }) => records));
      for (const { settle } of taken) settle(done);
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

/** Makes the deliveries of some records; tells how many. */
export async function fanOutRecords(pool: Pool, records: readonly LogRecord[], logger: Logger): Promise<number> {
  const events: Event[] = [];
  for (const record of records) {
    const event = readEvent(record);
    // Only cores write this topic, through `cloudEvent`: what can't be read is a defect, and must hold nobody up.
    if (event) events.push(event);
    else
      logger.error(
        { key: record.key, partition: record.partition, offset: `${record.offset}` },
        'a record that is not an event was skipped',
      );
  }
  if (events.length === 0) return 0;
  const column = (key: keyof Event) => events.map((event) => event[key]);
  const rows = await run(pool, fanOut, [column('id'), column('account'), column('type'), column('at'), column('body')]);
  return Number(rows[0]?.made ?? 0);
}

/** The body: type and time of the event, and its data as they came. Source: docs/contract.md, "Events". */
function readEvent({ headers, value }: LogRecord): Event | undefined {
  const { ce_id = '', ce_type: type, ce_source = '', ce_time: at } = headers;
  const id = decodeId('evt', ce_id);
  const account = decodeId('acct', /^\/accounts\/([^/]+)$/.exec(ce_source)?.[1] ?? '');
  if (!id || !account || !type || !at || Number.isNaN(Date.parse(at)) || !value) return undefined;
  const data = Buffer.from(value).toString('utf8');
  return {
    id,
    account,
    type,
    at,
    body: `{"type":${JSON.stringify(type)},"timestamp":${JSON.stringify(at)},"data":${data}}`,
  };
}
