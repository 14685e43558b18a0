import type { Pool } from 'pg';
import { first, promptStatement, run, statement, transactionWithin } from '../../../common/postgres/sql.ts';
import { TEST_EVENT } from '../entities.ts';

// Processes lease endpoints and not deliveries. Only the holder of the lease delivers to an endpoint, which bounds the
// concurrent requests to it over all processes, and an endpoint that hangs does not delay others. The statements take
// no account: a process passes only ids that earlier statements returned to it, and the account was checked when the
// rows were created.
//
// A transaction that changes deliveries, or several endpoints, locks the endpoints first, in the order of their ids:
// deleting and disabling reach deliveries in an order of their own, and could otherwise deadlock with recording.

/** The columns of an endpoint that this process leases. */
export interface LeasedEndpointRow {
  readonly id: string;
  readonly account_id: string;
  readonly url: string;
  readonly secret: Buffer;
  /** Those that still sign. */
  readonly former_secrets: readonly Buffer[];
  /** For how many ms it has been failing; null if it is not. */
  readonly failing_ms: number | null;
  /** Null until the endpoint has responded successfully at its present URL: it gets test events only. */
  readonly verified_at: Date | null;
  /** ms until the next attempt may be made while the endpoint is failing; null or negative when it may be made now. */
  readonly wait: number | null;
  /** Postgres's clock, in ms since 1970. */
  readonly clock_ms: number;
}

/**
 * How long fetching deliveries, recording attempts, and releasing, disabling or deleting endpoints may take, in ms: a
 * hundred times what 5,000 deliveries or 1,000 attempts take. For a Postgres that vanishes meanwhile: see `PROMPT_MS`.
 */
export const LONG_MS = 20_000;

export const LEASED_COLUMNS = `e.id, e.account_id, e.url, e.secret, e.verified_at,
  (extract(epoch from now() - e.failing_since) * 1000)::float8 as failing_ms,
  (extract(epoch from e.attempt_after - now()) * 1000)::float8 as wait,
  (extract(epoch from now()) * 1000)::float8 as clock_ms,
  array(
    select secret from unnest(e.former_secret || e.older_secrets, e.former_until || e.older_until) as former (secret, until)
    where until > now()
  ) as former_secrets`;

/** Whether this process can open the secret of an endpoint; `keyIds`: the parameter. */
const isOpenable = (keyIds: string) => `substring(secret for 4) = any(${keyIds}::bytea[])`;

const dueEndpoints = (which: string, limit: string) => `
  select id from (
    select id from webhook_endpoints
    where due_at <= now() and (leased_until is null or leased_until <= now()) and ${which}
      and ${isOpenable('$5')}
    order by due_at limit ${limit} for no key update skip locked
  ) as endpoints`;

/**
 * Index: webhook_endpoints_due. It also contains endpoints that other processes lease, and those whose secrets were
 * encrypted with other keys than $5; they are skipped.
 */
const claim = promptStatement<LeasedEndpointRow>(
  'webhooks_claim',
  `update webhook_endpoints e set leased_by = $1, leased_until = now() + $2 * interval '1 ms'
   from (
     ${dueEndpoints('failing_since is null and verified_at is not null', '$3')}
     union all ${dueEndpoints('(failing_since is not null or verified_at is null)', '$4')}
   ) due
   where e.id = due.id returning ${LEASED_COLUMNS}`,
);

/**
 * In how many ms the next endpoint that no process leases is due; negative if `claim` skipped it because it was locked.
 * Index: webhook_endpoints_due.
 */
const selectNextDue = promptStatement<{ wait: number }>(
  'webhooks_next_due',
  `select (extract(epoch from due_at - now()) * 1000)::float8 as wait from webhook_endpoints
   where due_at is not null and (leased_until is null or leased_until <= now()) and ${isOpenable('$1')}
   order by due_at limit 1`,
);

/** Index: webhook_endpoints_pkey. Returns current values. Endpoints that were deleted or disabled are not returned. */
const renew = promptStatement<LeasedEndpointRow>(
  'webhooks_renew',
  `update webhook_endpoints e set leased_until = now() + $2 * interval '1 ms'
   from (
     select id from webhook_endpoints where id = any($3::uuid[]) and leased_by = $1 order by id for no key update
   ) leased
   where e.id = leased.id returning ${LEASED_COLUMNS}`,
);

/** Index: webhook_endpoints_pkey. */
export const lockEndpoints = statement(
  'webhooks_lock_endpoints',
  'select from webhook_endpoints where id = any($1::uuid[]) order by id for no key update',
);

/** When an endpoint is due; null without pending deliveries. The `case` is needed because `greatest` ignores nulls. */
const DUE_AT = `case when min(next_attempt_at) is not null
  then greatest(min(next_attempt_at), e.attempt_after, now() + released.wait * interval '1 ms') end`;

/** Indexes: webhook_deliveries_due, webhook_deliveries_tests. */
const releaseEndpoints = statement(
  'webhooks_release',
  `update webhook_endpoints e
   set leased_by = null, leased_until = null,
       attempt_after = coalesce(now() + released.wait * interval '1 ms', e.attempt_after),
       due_at = case when e.verified_at is null
         then (select ${DUE_AT} from webhook_deliveries d
               where d.endpoint_id = e.id and d.status = 'pending' and d.event_type = '${TEST_EVENT}')
         else (select ${DUE_AT} from webhook_deliveries d where d.endpoint_id = e.id and d.status = 'pending') end
   from unnest($2::uuid[], $3::float8[]) as released (id, wait)
   where e.id = released.id and e.leased_by = $1`,
);

/** The leases of one process on endpoints, which are named by their UUIDs. */
export interface EndpointLeases {
  /** Leases up to so many due endpoints, working and throttled ones (`isThrottled`), the longest overdue first. */
  claim(limits: { working: number; throttled: number }): Promise<LeasedEndpointRow[]>;
  /** In how many ms the next endpoint can be leased, as far as is known; undefined without pending deliveries. */
  nextDue(): Promise<number | undefined>;
  /** Renews leases and returns the current rows. The process no longer leases endpoints that are missing in them. */
  renew(endpoints: readonly string[]): Promise<LeasedEndpointRow[]>;
  /**
   * Ends leases. An endpoint is due again with its next delivery, but no sooner than the ms that `endpoints` maps it
   * to, unless that is null.
   */
  release(endpoints: ReadonlyMap<string, number | null>): Promise<void>;
}

/**
 * `self`: a UUID of this process. `leaseMs`: after which other processes may lease the endpoints of one that died.
 * `keyIds`: of the keys that it has; it leases no endpoint whose secret was encrypted with another one.
 */
export function endpointLeases(pool: Pool, self: string, leaseMs: number, keyIds: readonly Buffer[]): EndpointLeases {
  return {
    claim: ({ working, throttled }) =>
      run(pool, claim, [self, leaseMs, Math.max(0, working), Math.max(0, throttled), keyIds]),
    nextDue: async () => (await first(pool, selectNextDue, [keyIds]))?.wait,
    renew: (endpoints) => run(pool, renew, [self, leaseMs, endpoints]),
    async release(endpoints) {
      // Two statements: a single one would wait for the lock with an older snapshot, and would compute `due_at` without
      // deliveries that were committed meanwhile.
      await transactionWithin(pool, LONG_MS, async (tx) => {
        await run(tx, lockEndpoints, [[...endpoints.keys()]]);
        await run(tx, releaseEndpoints, [self, [...endpoints.keys()], [...endpoints.values()]]);
      });
    },
  };
}
