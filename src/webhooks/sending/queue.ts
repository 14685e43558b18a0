import type { Pool } from 'pg';
import { promptStatement, run, statement, transactionWithin } from '../../../common/postgres/sql.ts';
import { TEST_EVENT } from '../entities.ts';
import {
  type EndpointLeases,
  endpointLeases,
  LEASED_COLUMNS,
  type LeasedEndpointRow,
  LONG_MS,
  lockEndpoints,
} from './endpoint-leases.ts';
import { PROBE_INTERVAL_S } from './schedule.ts';

/** How many deliveries to fetch for an endpoint. */
export interface Capacity {
  readonly id: string;
  /** The URL and the encrypted secret that its process knows. */
  readonly url: string;
  readonly secret: Buffer;
  readonly deliveries: number;
  /** The size of their bodies, which the last of them may exceed. */
  readonly bytes: number;
  readonly testsOnly: boolean;
  /** Whether its process has none of its deliveries: it gets one whatever the total. */
  readonly hasNone: boolean;
}

/** The results of attempts to an endpoint at a URL. */
export interface EndpointResults {
  readonly id: string;
  readonly url: string;
  readonly results: readonly DeliveryResult[];
}

/** What the results of attempts have changed. */
export interface Recorded {
  /** The endpoints that changed. */
  readonly changed: readonly LeasedEndpointRow[];
  /** The deliveries of test events among those whose state the results have changed. */
  readonly tests: ReadonlySet<string>;
}

/** A delivery to send. */
export interface DueDelivery {
  readonly id: string;
  readonly endpoint_id: string;
  readonly event_id: string;
  readonly body: string;
  /** Attempts before this one. */
  readonly attempts: number;
}

/** The result of an attempt, and the new state of its delivery. */
export interface DeliveryResult {
  /** UUID. */
  readonly delivery: string;
  /** Attempts before this one. */
  readonly attempts: number;
  readonly at: Date;
  /** HTTP status; null without a response. */
  readonly status: number | null;
  readonly latencyMs: number;
  readonly response: string;
  readonly newStatus: 'pending' | 'succeeded' | 'failed';
  /** Seconds until the next attempt; null when there is none. */
  readonly retryInS: number | null;
}

/**
 * Indexes: webhook_deliveries_due or webhook_deliveries_tests, one scan per endpoint, and webhook_deliveries_pkey. $2
 * and $7: the limits of each; $3: test events only; $4: deliveries fetched before; $5 and $6: the known URLs and
 * secrets; $8: endpoints that get one in any case; $9: the size of all, in which endpoints take turns. The size of a
 * large body is known without reading it. An endpoint whose URL or secret has changed gets nothing until its lease is
 * renewed: its new test event would go to the former URL and count as delivered, and a receiver that knows only the new
 * secret would reject what is signed with the former one alone. Nor does a disabled one, whose pending deliveries fail
 * a few thousand at a time.
 */
const selectDue = promptStatement<DueDelivery>(
  'webhooks_due',
  `select d.*
   from (
     select listed.id, nth, has_none, sum(size) over (order by nth, listed.id rows between unbounded preceding and 1 preceding) as before
     from unnest($1::uuid[], $2::integer[], $3::boolean[], $5::text[], $6::bytea[], $7::integer[], $8::boolean[])
       as leased (id, capacity, tests_only, url, secret, bytes, has_none)
     join webhook_endpoints e on e.id = leased.id and e.url = leased.url and e.secret = leased.secret
       and e.disabled_reason is null
     cross join lateral (
       select id, size, row_number() over due as nth,
         sum(size) over (due rows between unbounded preceding and 1 preceding) as before
       from (
         (select id, octet_length(body) as size, next_attempt_at from webhook_deliveries
          where not leased.tests_only and endpoint_id = leased.id and status = 'pending' and next_attempt_at <= now()
            and id <> all($4::uuid[])
          order by next_attempt_at limit leased.capacity)
         union all
         (select id, octet_length(body) as size, next_attempt_at from webhook_deliveries
          where leased.tests_only and endpoint_id = leased.id and status = 'pending' and event_type = '${TEST_EVENT}'
            and next_attempt_at <= now() and id <> all($4::uuid[])
          order by next_attempt_at limit leased.capacity)
       ) as pending
       window due as (order by next_attempt_at, id)
     ) as listed
     where coalesce(before, 0) < leased.bytes
   ) as measured cross join lateral (
     select id, endpoint_id, event_id, body, attempts from webhook_deliveries where id = measured.id limit 1
   ) d
   where coalesce(before, 0) < $9 or (nth = 1 and has_none)
   order by nth`,
  LONG_MS,
);

/**
 * Index: webhook_deliveries_pkey. Stores every attempt, but updates a delivery only if its state is still the one in
 * which the attempt was made; returns those of test events. Deliveries that were deleted meanwhile are skipped. Results
 * are joined with the table, and not with each other, whose number the planner does not know: it would compare each
 * with each.
 */
const recordAttempts = statement<{ id: string }>(
  'webhooks_record_attempts',
  `with result as materialized (
     select r.* from unnest($1::uuid[], $2::integer[], $3::timestamptz[], $4::integer[], $5::integer[], $6::text[],
       $7::text[], $8::float8[]) as r (id, attempts, at, answered, latency_ms, response, new_status, retry_in)
     join webhook_deliveries d on d.id = r.id
     for no key update of d
   ), inserted as (
     insert into webhook_attempts (delivery_id, at, status, latency_ms, response)
     select id, at, answered, latency_ms, response from result
     on conflict do nothing
   ), updated as (
     update webhook_deliveries d
     set status = result.new_status, attempts = d.attempts + 1,
         next_attempt_at = case when result.new_status = 'pending' then now() + result.retry_in * interval '1 s' end
     from result
     where d.id = result.id and d.status = 'pending' and d.attempts = result.attempts
     returning d.id, d.event_type
   )
   select id from updated where event_type = '${TEST_EVENT}'`,
);

/**
 * Whether attempts to an endpoint succeeded: while it is unverified, only those of its test events count, as others
 * were made before it was enabled again. Null if none counts.
 */
const SUCCEEDED = 'case when e.verified_at is null then result.test_succeeded else result.succeeded end';

/**
 * Index: webhook_endpoints_pkey. A result at a former URL says nothing about the endpoint and is ignored. The next
 * attempt to a failing endpoint is made after a tenth of the time that it has been failing, within bounds. A success
 * updates the row only if it is the first one, ever or after failures.
 */
const recordEndpointResults = statement<LeasedEndpointRow>(
  'webhooks_record_endpoint_results',
  `update webhook_endpoints e
   set failing_since = case when not ${SUCCEEDED} then coalesce(e.failing_since, now()) end,
       verified_at = case when ${SUCCEEDED} then coalesce(e.verified_at, now()) else e.verified_at end,
       attempt_after = case when not ${SUCCEEDED} then
         now() + least(greatest((now() - e.failing_since) / 10, interval '${PROBE_INTERVAL_S.min} s'),
           interval '${PROBE_INTERVAL_S.max} s')
       end
   from unnest($1::uuid[], $2::text[], $3::boolean[], $4::boolean[]) as result (id, url, succeeded, test_succeeded)
   where e.id = result.id and e.url = result.url and ${SUCCEEDED} is not null
     and (not ${SUCCEEDED} or e.failing_since is not null or e.verified_at is null)
   returning ${LEASED_COLUMNS}`,
);

/** The queue of pending deliveries, for one process. Endpoints and deliveries are named by their UUIDs. */
export interface Queue extends EndpointLeases {
  /**
   * Due deliveries of leased endpoints, except those `fetched` before, the longest overdue of an endpoint first.
   * `bytes`: the size of their bodies in all, which the last of them may exceed.
   */
  due(capacities: readonly Capacity[], fetched: readonly string[], bytes: number): Promise<DueDelivery[]>;
  /** Records attempts and the state of their endpoints in one transaction. */
  record(attempts: readonly EndpointResults[]): Promise<Recorded>;
}

/** `self`, `leaseMs` and `keyIds`: see `endpointLeases`. */
export function queueOf(pool: Pool, self: string, leaseMs: number, keyIds: readonly Buffer[]): Queue {
  return {
    ...endpointLeases(pool, self, leaseMs, keyIds),
    due(capacities, fetched, bytes) {
      const column = <Key extends keyof Capacity>(key: Key) => capacities.map((capacity) => capacity[key]);
      const known = [column('url'), column('secret')];
      const sizes = [column('bytes'), column('hasNone'), bytes];
      return run(pool, selectDue, [
        column('id'),
        column('deliveries'),
        column('testsOnly'),
        fetched,
        ...known,
        ...sizes,
      ]);
    },
    record(attempts) {
      const results = attempts.flatMap((each) => each.results);
      const column = <Key extends keyof DeliveryResult>(key: Key) => results.map((result) => result[key]);
      const endpoints = attempts.map(({ id }) => id);
      return transactionWithin(pool, LONG_MS, async (tx) => {
        await run(tx, lockEndpoints, [endpoints]);
        const updatedTests = await run(tx, recordAttempts, [
          column('delivery'),
          column('attempts'),
          column('at'),
          column('status'),
          column('latencyMs'),
          column('response'),
          column('newStatus'),
          column('retryInS'),
        ]);
        const tests = new Set(updatedTests.map(({ id }) => id));
        const changed = await run(tx, recordEndpointResults, [
          endpoints,
          attempts.map(({ url }) => url),
          attempts.map((each) => succeeded(each.results)),
          attempts.map((each) => succeeded(each.results.filter(({ delivery }) => tests.has(delivery)))),
        ]);
        return { changed, tests };
      });
    },
  };
}

/** Whether any attempt succeeded; null without attempts. */
function succeeded(results: readonly DeliveryResult[]): boolean | null {
  return results.length === 0 ? null : results.some(({ newStatus }) => newStatus === 'succeeded');
}
