import { setTimeout as sleep } from 'node:timers/promises';
import { metrics } from '@opentelemetry/api';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { Agent, type buildConnector } from 'undici';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import type { Notifications } from '../../common/postgres/notifications.ts';
import { pause } from '../../common/runtime/pause.ts';
import { throttledFailures } from '../../common/runtime/throttled-report.ts';
import { durations } from '../../common/telemetry/durations.ts';
import { attempt, type Outcome, TIMEOUT_MS } from './attempt.ts';
import { attemptsPerBudget, type BudgetKey, keyText, spendBudgets } from './attempt-budgets.ts';
import { completedAttempts } from './completed-attempts.ts';
import { isThrottled, type LeasedEndpoint, leasedEndpoints } from './leased-endpoints.ts';
import { type DeliveryResult, type DueDelivery, queueOf } from './queue.ts';
import { retryDelay } from './schedule.ts';
import type { Seal } from './seal.ts';

/** Sends pending deliveries. */
export interface Deliverer {
  /** Waits up to `graceMs` for requests in flight, records their results and releases the endpoints. */
  stop(): Promise<void>;
}

export interface DelivererOptions {
  readonly pool: Pool;
  readonly notifications: Notifications;
  readonly seal: Seal;
  readonly connect: buildConnector.connector;
  readonly logger: Logger;
  /** Default: `LIMITS`. */
  readonly limits?: Partial<Limits>;
}

const LIMITS: Readonly<Limits> = {
  requestsPerEndpoint: 50,
  queuedPerEndpoint: 150,
  endpoints: 2_000,
  leaseMs: 30_000,
  timeoutMs: TIMEOUT_MS,
  graceMs: 5_000,
};

interface Limits {
  /** Concurrent requests to one endpoint: enough for 100 a second to an endpoint that takes half a second. */
  requestsPerEndpoint: number;
  /** Deliveries of one endpoint that are queued in this process. */
  queuedPerEndpoint: number;
  /** Working endpoints that one process leases, and throttled ones: these may all hang, and must not take the place of those. */
  endpoints: number;
  /** When another process may lease the endpoints of a process that died. */
  leaseMs: number;
  /** How long an endpoint may take to respond. */
  timeoutMs: number;
  /** How long requests in flight may take after `stop`. */
  graceMs: number;
}

/**
 * How often to poll for deliveries to leased endpoints, and for endpoints while notifications don't arrive. Also the
 * shortest wait for the next due endpoint.
 */
const POLL_MS = 100;
/** Pause between two iterations: the attempts that complete in it are recorded in one transaction. */
const PAUSE_MS = 10;
const RETRY_MS = 1_000;
/** How long an idle endpoint stays leased: a delivery that follows soon needs no new lease. */
const LINGER_MS = 1_000;
/** Renewals per lease period. A renewal also reads changes of the endpoint. */
const RENEWALS = 6;

/**
 * Delivers to the endpoints that this process leases; any number of processes may run. Results are recorded in batches.
 * Deliveries whose result a crash left unrecorded are sent once more, with the same `webhook-id`.
 */
export function startDeliverer({
  pool,
  notifications,
  seal,
  connect,
  logger,
  ...options
}: DelivererOptions): Deliverer {
  const limits = { ...LIMITS, ...options.limits };
  const queue = queueOf(pool, newUuid(), limits.leaseMs);
  // Unlimited connections and no timeouts of its own: endpoints on the same host must not wait for one another.
  const agent = new Agent({ connect, connections: null, headersTimeout: 0, bodyTimeout: 0 });
  const leased = leasedEndpoints(seal, logger);
  const attemptDuration = metrics
    .getMeter('signpost.core')
    .createHistogram('signpost.webhooks.attempt.duration', durations('Duration of webhook attempts, by result'));
  const completed = completedAttempts({ pool, queue, leased, logger });
  const stopping = new AbortController();
  const aborting = new AbortController();
  let renewedAt = performance.now();
  const bell = notifications.bell('webhooks', POLL_MS);
  const reportFailure = throttledFailures((fields) =>
    logger.warn(fields, 'delivering webhooks failed; it is retried in a second'),
  );

  function sendQueued(endpoint: LeasedEndpoint): void {
    while (!isThrottled(endpoint.row) && endpoint.inFlight < limits.requestsPerEndpoint && !stopping.signal.aborted) {
      const delivery = endpoint.queued.shift();
      if (!delivery) return;
      void send(endpoint, delivery);
    }
  }

  async function send(endpoint: LeasedEndpoint, delivery: DueDelivery): Promise<void> {
    endpoint.inFlight++;
    const { url } = endpoint.row;
    const budget = isThrottled(endpoint.row) ? budgetOf(endpoint) : undefined;
    const request = { url, secrets: endpoint.secrets, id: encodeId('evt', delivery.event_id), body: delivery.body };
    const outcome = await attempt(agent, request, { stop: aborting.signal, timeoutMs: limits.timeoutMs });
    endpoint.inFlight--;
    if (outcome) attemptDuration.record(outcome.latencyMs / 1_000, attributesOf(outcome));
    if (outcome) completed.add({ endpoint, url, delivery, result: resultOf(delivery, outcome), budget });
    else endpoint.fetched.delete(delivery.id);
    // After a failure nothing more is sent until it is recorded; otherwise an endpoint that refuses connections would
    // receive every queued delivery.
    if (outcome && isSuccess(outcome)) sendQueued(endpoint);
    bell.ring();
  }

  async function fetchDue(): Promise<void> {
    const capacities = leased.capacities(limits.requestsPerEndpoint, limits.queuedPerEndpoint);
    if (capacities.length === 0) return;
    const fetched = capacities.flatMap(({ id }) => [...(leased.get(id)?.fetched ?? [])]);
    for (const delivery of await queue.due(capacities, fetched)) {
      const endpoint = leased.get(delivery.endpoint_id);
      endpoint?.fetched.add(delivery.id);
      endpoint?.queued.push(delivery);
    }
    for (const endpoint of leased.values()) sendQueued(endpoint);
  }

  /** Sends to throttled endpoints as far as the budgets allow, and releases the others until their budgets refill. */
  async function sendThrottled(): Promise<void> {
    const throttled = [...leased.values()].filter(({ row, queued }) => isThrottled(row) && queued.length > 0);
    if (throttled.length === 0) return;
    const byBudget = Map.groupBy(throttled, (endpoint) => keyText(budgetOf(endpoint)));
    const denied = new Map<string, number>();
    for (const { granted, wait, ...budget } of await spendBudgets(pool, attemptsPerBudget(throttled.map(budgetOf)))) {
      for (const [index, endpoint] of (byBudget.get(keyText(budget)) ?? []).entries()) {
        const delivery = endpoint.queued.shift();
        if (!delivery) continue;
        if (index < granted) void send(endpoint, delivery);
        else {
          endpoint.fetched.delete(delivery.id);
          denied.set(endpoint.row.id, wait);
        }
      }
    }
    await release(denied);
  }

  async function release(endpoints: ReadonlyMap<string, number | null>): Promise<void> {
    if (endpoints.size === 0) return;
    await queue.release(endpoints);
    for (const id of endpoints.keys()) leased.remove(id);
  }

  const releaseIdle = (idleMs: number) => release(new Map(leased.idle(idleMs).map((id) => [id, null])));

  function freePlaces(): { working: number; throttled: number } {
    let throttled = 0;
    for (const { row } of leased.values()) if (isThrottled(row)) throttled++;
    return { working: limits.endpoints - (leased.size - throttled), throttled: limits.endpoints - throttled };
  }

  /**
   * Records results, renews and claims leases, sends due deliveries and releases idle endpoints. Returns the longest
   * wait for a notification before the next iteration, in ms; undefined: no limit.
   */
  async function iterate(): Promise<number | undefined> {
    await completed.record();
    if (performance.now() - renewedAt > limits.leaseMs / RENEWALS && leased.size > 0) {
      leased.applyRenewal(await queue.renew([...leased.keys()]));
      renewedAt = performance.now();
    }
    for (const row of await queue.claim(freePlaces())) leased.put(row);
    await fetchDue();
    await sendThrottled();
    await releaseIdle(LINGER_MS);
    if (leased.size > 0) return POLL_MS;
    const nextDue = await queue.nextDue();
    return nextDue === undefined ? undefined : Math.max(nextDue, POLL_MS);
  }

  const running = (async () => {
    while (!stopping.signal.aborted) {
      try {
        const wait = await iterate();
        await pause(PAUSE_MS, stopping.signal);
        await bell.wait(wait);
      } catch (error) {
        reportFailure(error);
        await pause(RETRY_MS, stopping.signal);
      }
    }
  })();

  return {
    async stop() {
      stopping.abort();
      bell.ring();
      await running;
      for (const { queued, fetched } of leased.values()) for (const { id } of queued.splice(0)) fetched.delete(id);
      const grace = setTimeout(() => aborting.abort(), limits.graceMs);
      while ([...leased.values()].some(({ inFlight }) => inFlight > 0)) await sleep(PAUSE_MS);
      clearTimeout(grace);
      try {
        await completed.record();
        await releaseIdle(0);
      } catch (error) {
        logger.warn({ err: error }, 'webhook attempts could not be recorded and will be repeated');
      }
      await agent.destroy();
    },
  };
}

function budgetOf({ row, host }: LeasedEndpoint): BudgetKey {
  return { account: row.account_id, host };
}

/** `response`: the class of the status, as endpoints may send any. */
function attributesOf(outcome: Outcome): Record<string, string> {
  return {
    'signpost.webhooks.result': isSuccess(outcome) ? 'succeeded' : 'failed',
    'signpost.webhooks.response': outcome.status === null ? 'none' : `${Math.floor(outcome.status / 100)}xx`,
  };
}

function isSuccess({ status }: Pick<Outcome, 'status'>): boolean {
  return status !== null && status >= 200 && status < 300;
}

function resultOf({ id, attempts }: DueDelivery, outcome: Outcome): DeliveryResult {
  const succeeded = isSuccess(outcome);
  const delay = succeeded ? null : retryDelay(attempts + 1);
  const newStatus = succeeded ? 'succeeded' : delay === null ? 'failed' : 'pending';
  return { ...outcome, delivery: id, attempts, newStatus, retryInS: delay };
}
