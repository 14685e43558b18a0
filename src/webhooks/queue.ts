import type { Pool } from 'pg';
import { first, type Queryable, run, statement, transaction } from '../../common/postgres/sql.ts';
import { TEST_EVENT } from './deliveries.ts';
import { PROBE_S } from './schedule.ts';

// A process leases endpoints and not deliveries: it alone delivers to the endpoints that it holds, so what an endpoint
// gets at a time is bounded over all processes, and one that hangs keeps nobody from the others. Every statement here
// is of a process that holds what it names; accounts were judged when the rows were made.
//
// Whoever changes deliveries or several endpoints locks the endpoints first, in the order of their ids: deleting and
// disabling touch deliveries in an order of their own, and would deadlock with recording otherwise.

/** An endpoint that this process holds. */
export interface HeldRow {
  readonly id: string;
  readonly account_id: string;
  readonly url: string;
  readonly secret: Buffer;
  /** Null when only one signs. */
  readonly former_secret: Buffer | null;
  readonly failing_since: Date | null;
  /** Null while it has never answered at this address: then it gets test events only. */
  readonly verified_at: Date | null;
  /** ms until it may be tried again, while it fails; null or negative when it may. */
  readonly wait: number | null;
}

/** How many deliveries of an endpoint there is room for. */
export interface Room {
  readonly id: string;
  readonly deliveries: number;
  readonly testsOnly: boolean;
}

/** How an endpoint answered at an address. */
export interface Verdict {
  readonly id: string;
  readonly url: string;
  readonly succeeded: boolean;
}

/** A delivery to make. */
export interface DueRow {
  readonly id: string;
  readonly endpoint_id: string;
  readonly event_id: string;
  readonly body: string;
  /** Attempts before this one. */
  readonly attempts: number;
}

/** What a delivery's row is told of an attempt. */
export interface Result {
  readonly delivery: string;
  /** Attempts before this one. */
  readonly attempts: number;
  readonly at: Date;
  readonly status: number | null;
  readonly latencyMs: number;
  readonly response: string;
  readonly became: 'pending' | 'succeeded' | 'failed';
  /** Seconds until the next one; null where there is none. */
  readonly retryIn: number | null;
}

const HELD = `e.id, e.account_id, e.url, e.secret, e.failing_since, e.verified_at,
  (extract(epoch from e.attempt_after - now()) * 1000)::float8 as wait,
  case when e.former_until > now() then e.former_secret end as former_secret`;

/** Index: webhook_endpoints_due, which also has those that others hold; they are passed over. */
const claim = statement<HeldRow>(
  'webhooks_claim',
  `update webhook_endpoints e set leased_by = $1, leased_until = now() + $2 * interval '1 ms'
   from (
     select id from webhook_endpoints where due_at <= now() and (leased_until is null or leased_until <= now())
     order by due_at limit $3 for no key update skip locked
   ) due
   where e.id = due.id returning ${HELD}`,
);

/**
 * When the next endpoint is due that no process holds, in ms; negative if it was passed over because it was locked.
 * Index: webhook_endpoints_due.
 */
const next = statement<{ wait: number }>(
  'webhooks_next',
  `select (extract(epoch from due_at - now()) * 1000)::float8 as wait from webhook_endpoints
   where due_at is not null and (leased_until is null or leased_until <= now()) order by due_at limit 1`,
);

/** Index: webhook_endpoints_pkey. Also what has changed since; those that are gone or disabled are not given back. */
const renew = statement<HeldRow>(
  'webhooks_renew',
  `update webhook_endpoints e set leased_until = now() + $2 * interval '1 ms'
   from (
     select id from webhook_endpoints where id = any($3::uuid[]) and leased_by = $1 order by id for no key update
   ) kept
   where e.id = kept.id returning ${HELD}`,
);

/**
 * Indexes: webhook_deliveries_due or webhook_deliveries_tests, once for each endpoint. $2: the most for each; $3: test
 * events only; $4: deliveries in hand.
 */
const due = statement<DueRow>(
  'webhooks_due',
  `select d.* from unnest($1::uuid[], $2::integer[], $3::boolean[]) as held (id, room, tests_only)
   cross join lateral (
     (select id, endpoint_id, event_id, body, attempts from webhook_deliveries
      where not held.tests_only and endpoint_id = held.id and status = 'pending' and next_attempt_at <= now()
        and id <> all($4::uuid[])
      order by next_attempt_at limit held.room)
     union all
     (select id, endpoint_id, event_id, body, attempts from webhook_deliveries
      where held.tests_only and endpoint_id = held.id and status = 'pending' and event_type = '${TEST_EVENT}'
        and next_attempt_at <= now() and id <> all($4::uuid[])
      order by next_attempt_at limit held.room)
   ) d`,
);

/** Index: webhook_endpoints_pkey. */
const lock = statement(
  'webhooks_lock_endpoints',
  'select from webhook_endpoints where id = any($1::uuid[]) order by id for no key update',
);

/**
 * Index: webhook_deliveries_pkey. Every attempt is kept; the delivery itself moves only from where the attempt found
 * it. Those that were deleted meanwhile are left alone.
 */
const record = statement(
  'webhooks_record',
  `with result as materialized (
     select * from unnest($1::uuid[], $2::integer[], $3::timestamptz[], $4::integer[], $5::integer[], $6::text[],
       $7::text[], $8::float8[]) as r (id, attempts, at, answered, latency_ms, response, became, retry_in)
   ), locked as materialized (
     select id from webhook_deliveries where id = any($1::uuid[]) for no key update
   ), kept as (
     insert into webhook_attempts (delivery_id, at, status, latency_ms, response)
     select id, at, answered, latency_ms, response from result join locked using (id)
     on conflict do nothing
   )
   update webhook_deliveries d
   set status = result.became, attempts = d.attempts + 1,
       next_attempt_at = case when result.became = 'pending' then now() + result.retry_in * interval '1 s' end
   from result join locked using (id)
   where d.id = locked.id and d.status = 'pending' and d.attempts = result.attempts`,
);

/**
 * Index: webhook_endpoints_pkey. What another address answered than the endpoint now has says nothing about it. The
 * longer it has been failing, the longer it is left alone: a tenth of that time. A success writes only where it is the
 * first one.
 */
const judge = statement<HeldRow>(
  'webhooks_judge',
  `update webhook_endpoints e
   set failing_since = case when not told.succeeded then coalesce(e.failing_since, now()) end,
       verified_at = case when told.succeeded then coalesce(e.verified_at, now()) else e.verified_at end,
       attempt_after = case when not told.succeeded then
         now() + least(greatest((now() - e.failing_since) / 10, interval '${PROBE_S.least} s'), interval '${PROBE_S.most} s')
       end
   from unnest($1::uuid[], $2::text[], $3::boolean[]) as told (id, url, succeeded)
   where e.id = told.id and e.url = told.url
     and (not told.succeeded or e.failing_since is not null or e.verified_at is null)
   returning ${HELD}`,
);

/** When an endpoint is due that has something waiting: `greatest` would pass over what is not there. */
const DUE = `case when min(next_attempt_at) is not null
  then greatest(min(next_attempt_at), e.attempt_after, now() + given_back.wait * interval '1 ms') end`;

/** Indexes: webhook_deliveries_due, webhook_deliveries_tests. */
const release = statement(
  'webhooks_release',
  `update webhook_endpoints e
   set leased_by = null, leased_until = null,
       attempt_after = coalesce(now() + given_back.wait * interval '1 ms', e.attempt_after),
       due_at = case when e.verified_at is null
         then (select ${DUE} from webhook_deliveries d
               where d.endpoint_id = e.id and d.status = 'pending' and d.event_type = '${TEST_EVENT}')
         else (select ${DUE} from webhook_deliveries d where d.endpoint_id = e.id and d.status = 'pending') end
   from unnest($2::uuid[], $3::float8[]) as given_back (id, wait)
   where e.id = given_back.id and e.leased_by = $1`,
);

/** What a process, named by a UUID of its own, does with the deliveries that wait. */
export interface Queue {
  /** Takes endpoints that something waits for, the longest first. */
  claim(most: number): Promise<HeldRow[]>;
  /** In how many ms the next endpoint can be taken, as far as is known; undefined if nothing waits for any. */
  next(): Promise<number | undefined>;
  /** Keeps endpoints, and hears what has changed; those that are not given back are no longer held. */
  renew(endpoints: readonly string[]): Promise<HeldRow[]>;
  /** What is due of endpoints that are held. */
  due(rooms: readonly Room[], inHand: readonly string[]): Promise<DueRow[]>;
  /** Notes what came of attempts, and how endpoints answered; gives those back of which something has changed. */
  record(results: readonly Result[], verdicts: readonly Verdict[]): Promise<HeldRow[]>;
  /** Gives endpoints back. They are due when their next delivery is, and not before so many ms where some are named. */
  release(endpoints: ReadonlyMap<string, number | null>): Promise<void>;
}

/** `lease`: ms after which the endpoints of a process that died are taken by others. */
export function queueOf(pool: Pool, self: string, lease: number): Queue {
  const on: Queryable = pool;
  return {
    claim: (most) => run(on, claim, [self, lease, most]),
    next: async () => (await first(on, next))?.wait,
    renew: (endpoints) => run(on, renew, [self, lease, endpoints]),
    due(rooms, inHand) {
      const column = <Key extends keyof Room>(key: Key) => rooms.map((room) => room[key]);
      return run(on, due, [column('id'), column('deliveries'), column('testsOnly'), inHand]);
    },
    record(results, verdicts) {
      const column = <Key extends keyof Result>(key: Key) => results.map((result) => result[key]);
      const told = <Key extends keyof Verdict>(key: Key) => verdicts.map((verdict) => verdict[key]);
      return transaction(pool, async (tx) => {
        await run(tx, lock, [told('id')]);
        await run(tx, record, [
          column('delivery'),
          column('attempts'),
          column('at'),
          column('status'),
          column('latencyMs'),
          column('response'),
          column('became'),
          column('retryIn'),
        ]);
        return run(tx, judge, [told('id'), told('url'), told('succeeded')]);
      });
    },
    async release(endpoints) {
      // In one statement, a delivery that is committed while it waits for the lock would not be seen, and forgotten.
      await transaction(pool, async (tx) => {
        await run(tx, lock, [[...endpoints.keys()]]);
        await run(tx, release, [self, [...endpoints.keys()], [...endpoints.values()]]);
      });
    },
  };
}
