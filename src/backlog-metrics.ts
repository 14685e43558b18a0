import { metrics, type ObservableGauge } from '@opentelemetry/api';
import type { Pool } from 'pg';
import { first, promptStatement } from '../common/postgres/sql.ts';
import { singleFlight } from '../common/runtime/single-flight.ts';
import { TEST_EVENT } from './webhooks/entities.ts';

/** How long figures from Postgres are reused, in ms, for several collectors and frequent ones. */
const REUSED_MS = 5_000;

/** Counting stops here: a longer backlog is not read to its end, however often metrics are collected. */
const MOST = 100_000;
const COUNTED = `counted up to ${MOST.toLocaleString('en')}`;

/** A backlog: `waiting` is its length in `unit`, and `age` how long the oldest has waited in s, if that is known. */
interface Backlog {
  readonly name: string;
  readonly unit: string;
  /** The descriptions of the two metrics: what is counted, and whose age is measured. */
  readonly waiting: string;
  readonly oldest: string;
  readonly statement: ReturnType<typeof promptStatement<{ waiting: number; age: number | null }>>;
}

/** What each role works off. */
const BACKLOGS: Readonly<Record<'relay' | 'worker', readonly Backlog[]>> = {
  relay: [
    {
      name: 'outbox',
      unit: '{record}',
      waiting: `Events and routes that wait in the outbox; ${COUNTED}`,
      oldest: 'Age of the oldest event or route that waits in the outbox',
      // Index: outbox_id of each slot.
      statement: promptStatement(
        'metrics_outbox',
        `select count(*)::integer as waiting, extract(epoch from now() - min(at))::float8 as age
         from (select at from outbox_waiting limit ${MOST}) waiting`,
      ),
    },
  ],
  worker: [
    {
      name: 'webhooks.backlog',
      unit: '{delivery}',
      waiting: `Webhook deliveries that are due; ${COUNTED}`,
      oldest: 'How long the longest overdue webhook delivery has been due',
      // What may not be sent yet is not due: all that waits while an endpoint fails, and all but test events while it
      // is not verified. Indexes: webhook_endpoints_due, and webhook_deliveries_due or webhook_deliveries_tests for
      // each of its endpoints, whatever the statistics are: a join could start from all pending deliveries.
      statement: promptStatement(
        'metrics_webhooks',
        `select count(*)::integer as waiting, extract(epoch from now() - min(due_at))::float8 as age
         from (
           select greatest(d.next_attempt_at, e.attempt_after) as due_at from webhook_endpoints e cross join lateral (
             (select next_attempt_at from webhook_deliveries
              where e.verified_at is not null and endpoint_id = e.id and status = 'pending' and next_attempt_at <= now() offset 0)
             union all
             (select next_attempt_at from webhook_deliveries
              where e.verified_at is null and endpoint_id = e.id and status = 'pending' and event_type = '${TEST_EVENT}'
                and next_attempt_at <= now() offset 0)
           ) d
           where (e.due_at <= now() or e.leased_until > now()) and coalesce(e.attempt_after <= now(), true) limit ${MOST}
         ) due`,
      ),
    },
    {
      name: 'batches.rows',
      unit: '{row}',
      waiting: 'Rows of batches that are not final yet',
      oldest: 'Age of the oldest batch with such rows',
      // Those of closed accounts never continue. Indexes: batches_unfinished, accounts_pkey.
      statement: promptStatement(
        'metrics_batches',
        `select coalesce(sum(total - position), 0)::integer as waiting,
                extract(epoch from now() - min(w.created_at))::float8 as age
         from batches w join accounts a on a.id = w.account_id and a.closed_at is null
         where w.completed_at is null`,
      ),
    },
    {
      name: 'target_changes.rows',
      unit: '{row}',
      waiting: 'Rows of changes of many targets that are not final yet',
      oldest: 'Age of the oldest change of many targets with such rows',
      // Indexes: target_changes_unfinished, accounts_pkey.
      statement: promptStatement(
        'metrics_target_changes',
        `select coalesce(sum(total - position), 0)::integer as waiting,
                extract(epoch from now() - min(w.created_at))::float8 as age
         from target_changes w join accounts a on a.id = w.account_id and a.closed_at is null
         where w.completed_at is null`,
      ),
    },
  ],
};

/**
 * Measures what waits for the roles of this process, over all processes: each core with the role reports the same
 * figures. While Postgres is unavailable there are none.
 */
export function measureBacklogs(pool: Pool, roles: ReadonlySet<string>): void {
  const meter = metrics.getMeter('signpost.core');
  for (const [role, backlogs] of Object.entries(BACKLOGS)) {
    if (!roles.has(role)) continue;
    for (const { name, unit, waiting, oldest, statement } of backlogs) {
      const gauges: [ObservableGauge, ObservableGauge] = [
        meter.createObservableGauge(`signpost.${name}.waiting`, { unit, description: waiting }),
        meter.createObservableGauge(`signpost.${name}.age`, {
          unit: 's',
          description: oldest,
        }),
      ];
      const read = singleFlight(() => first(pool, statement), REUSED_MS);
      meter.addBatchObservableCallback(async (result) => {
        const row = await read().catch(() => undefined);
        if (!row) return;
        result.observe(gauges[0], row.waiting);
        result.observe(gauges[1], row.age ?? 0);
      }, gauges);
    }
  }
}

/** Measures the connections of a pool, named by OpenTelemetry's conventions for databases. */
export function measurePool(pool: Pool, most: number): void {
  const meter = metrics.getMeter('signpost.core');
  const name = { 'db.client.connection.pool.name': 'signpost-core' };
  meter
    .createObservableUpDownCounter('db.client.connection.count', {
      unit: '{connection}',
      description: 'Connections to Postgres by state',
    })
    .addCallback((result) => {
      result.observe(pool.idleCount, { ...name, 'db.client.connection.state': 'idle' });
      result.observe(pool.totalCount - pool.idleCount, { ...name, 'db.client.connection.state': 'used' });
    });
  meter
    .createObservableUpDownCounter('db.client.connection.max', {
      unit: '{connection}',
      description: 'Connections to Postgres that the process may open',
    })
    .addCallback((result) => result.observe(most, name));
  meter
    .createObservableUpDownCounter('db.client.connection.pending_requests', {
      unit: '{request}',
      description: 'Statements that wait for a connection',
    })
    .addCallback((result) => result.observe(pool.waitingCount, name));
}
