import { setTimeout as sleep } from 'node:timers/promises';
import { metrics } from '@opentelemetry/api';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import type { buildConnector } from 'undici';
import { encodeId } from '../../../common/contract/ids.ts';
import { throttledFailures } from '../../../common/runtime/throttled-report.ts';
import { durations } from '../../../common/telemetry/durations.ts';
import { attempt, connectionsOf, type Outcome } from './attempt.ts';
import { attemptsPerBudget, type BudgetKey, keyText, refundBudgets, spendBudgets } from './attempt-budgets.ts';
import type { CompletedAttempts } from './completed-attempts.ts';
import { isThrottled, type LeasedEndpoint, type LeasedEndpoints } from './leased-endpoints.ts';
import type { DeliveryResult, DueDelivery } from './queue.ts';
import { retryDelay } from './schedule.ts';

/** Sends the queued deliveries of leased endpoints. */
export interface Sender {
  /** Sends to endpoints that are not throttled, up to the limits of concurrent requests. */
  sendQueued(): void;
  /**
   * Sends to throttled endpoints as far as the budgets allow. Resolves with the others: the ms until their budgets have
   * another attempt, by UUID.
   */
  sendThrottled(): Promise<ReadonlyMap<string, number>>;
  /** Drops what is queued, and waits up to `graceMs` for requests in flight. */
  finish(graceMs: number): Promise<void>;
  /** Closes the connections. */
  close(): Promise<void>;
}

export interface SenderOptions {
  readonly pool: Pool;
  readonly leased: LeasedEndpoints;
  readonly completed: CompletedAttempts;
  readonly connect: buildConnector.connector;
  readonly logger: Logger;
  /** Concurrent requests to one endpoint. */
  readonly requestsPerEndpoint: number;
  /** Concurrent requests to all endpoints that are not throttled, beyond which each gets an equal share of them. */
  readonly requests: number;
  /** How long an endpoint may take to respond, in ms. */
  readonly timeoutMs: number;
  /** Once aborted, no further request is sent. */
  readonly stopping: AbortSignal;
  /** Called after each attempt. */
  onAttempt(): void;
}

/** How often it is checked whether requests are still in flight, in ms. */
const CHECK_MS = 10;
/** When an attempt is repeated that this process could not open a connection for, in ms. */
const REPEAT_MS = 1_000;

export function createSender(options: SenderOptions): Sender {
  const { pool, leased, completed, connect, logger, requestsPerEndpoint, requests } = options;
  const { timeoutMs, stopping, onAttempt } = options;
  const agent = connectionsOf(connect);
  const aborting = new AbortController();
  const attemptDuration = metrics
    .getMeter('signpost.core')
    .createHistogram('signpost.webhooks.attempt.duration', durations('Duration of webhook attempts, by result'));

  const reportOwnFailure = throttledFailures((fields) =>
    logger.warn(fields, 'webhooks could not be sent, as this process can’t open connections; trying again'),
  );
  /** Requests in flight to endpoints that were not throttled. */
  let unthrottled = 0;
  /** What each of these endpoints may have in flight while `requests` are. */
  let share = requests;

  /** A process that Postgres cannot be reached from may have lost the lease to another, and does not know. */
  const maySend = ({ leasedUntil }: LeasedEndpoint) => !stopping.aborted && performance.now() < leasedUntil;
  const isPaused = ({ pausedUntil }: LeasedEndpoint) => performance.now() < pausedUntil;

  function hasRoomFor({ inFlight }: LeasedEndpoint): boolean {
    return inFlight < requestsPerEndpoint && (unthrottled < requests || inFlight < share);
  }

  /**
   * After a failure nothing more is sent until it is recorded; otherwise an endpoint that refuses connections would
   * receive every queued delivery.
   */
  function isHeld(endpoint: LeasedEndpoint): boolean {
    return isThrottled(endpoint.row) || isPaused(endpoint) || endpoint.unrecordedFailures > 0;
  }

  function sendQueuedOf(endpoint: LeasedEndpoint): void {
    while (!isHeld(endpoint) && hasRoomFor(endpoint) && maySend(endpoint)) {
      const delivery = endpoint.queued.shift();
      if (!delivery) return;
      void send(endpoint, delivery);
    }
  }

  async function send(endpoint: LeasedEndpoint, delivery: DueDelivery): Promise<void> {
    endpoint.inFlight++;
    const { url } = endpoint.row;
    const budget = isThrottled(endpoint.row) ? budgetOf(endpoint) : undefined;
    if (!budget) unthrottled++;
    const request = {
      url,
      secrets: endpoint.secrets,
      id: encodeId('evt', delivery.event_id),
      at: new Date(Date.now() + endpoint.clockOffsetMs),
      body: delivery.body,
    };
    const outcome = await attempt(agent, request, { stop: aborting.signal, timeoutMs }).catch(
      async (error: unknown) => {
        endpoint.pausedUntil = performance.now() + REPEAT_MS;
        reportOwnFailure(error);
        if (budget) await refundBudgets(pool, attemptsPerBudget([budget])).catch(reportOwnFailure);
        return undefined;
      },
    );
    endpoint.inFlight--;
    if (!budget) unthrottled--;
    if (outcome) attemptDuration.record(outcome.latencyMs / 1_000, attributesOf(outcome));
    if (outcome) completed.add({ endpoint, url, delivery, result: resultOf(delivery, outcome), budget });
    else endpoint.fetched.delete(delivery.id);
    if (outcome && !isSuccess(outcome)) endpoint.unrecordedFailures++;
    sendQueuedOf(endpoint);
    onAttempt();
  }

  return {
    sendQueued() {
      const sharing = [...leased.values()].filter(
        ({ row, queued, inFlight }) => !isThrottled(row) && queued.length + inFlight > 0,
      );
      share = Math.max(1, Math.floor(requests / sharing.length));
      for (const endpoint of leased.values()) sendQueuedOf(endpoint);
    },
    async sendThrottled() {
      const denied = new Map<string, number>();
      const throttled = [...leased.values()].filter(
        (endpoint) => isThrottled(endpoint.row) && endpoint.queued.length > 0 && !isPaused(endpoint),
      );
      if (throttled.length === 0) return denied;
      const byBudget = Map.groupBy(throttled, (endpoint) => keyText(budgetOf(endpoint)));
      for (const { granted, wait, ...budget } of await spendBudgets(pool, attemptsPerBudget(throttled.map(budgetOf)))) {
        for (const [index, endpoint] of (byBudget.get(keyText(budget)) ?? []).entries()) {
          const delivery = endpoint.queued.shift();
          if (!delivery) continue;
          if (index < granted && maySend(endpoint)) void send(endpoint, delivery);
          else {
            endpoint.fetched.delete(delivery.id);
            denied.set(endpoint.row.id, wait);
          }
        }
      }
      return denied;
    },
    async finish(graceMs) {
      for (const { queued, fetched } of leased.values()) for (const { id } of queued.splice(0)) fetched.delete(id);
      const grace = setTimeout(() => aborting.abort(), graceMs);
      while ([...leased.values()].some(({ inFlight }) => inFlight > 0)) await sleep(CHECK_MS);
      clearTimeout(grace);
    },
    close: () => agent.destroy(),
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
