import type { Pool } from 'pg';
import type { Logger } from 'pino';
import type { buildConnector } from 'undici';
import { newUuid } from '../../../common/contract/ids.ts';
import { pause } from '../../../common/runtime/pause.ts';
import { repeatUntilStopped } from '../../../common/runtime/repeat-until-stopped.ts';
import { throttledFailures } from '../../../common/runtime/throttled-report.ts';
import type { Notifications } from '../../db/notifications.ts';
import type { SecretCipher } from '../secret-cipher.ts';
import { TIMEOUT_MS } from './attempt.ts';
import { completedAttempts } from './completed-attempts.ts';
import { isThrottled, leasedEndpoints } from './leased-endpoints.ts';
import { queueOf } from './queue.ts';
import { createSender } from './sender.ts';

/** Sends pending deliveries. */
export interface Deliverer {
  /** Waits up to `Limits.graceMs` for requests in flight, records their results and releases the endpoints. */
  stop(): Promise<void>;
}

export interface DelivererOptions {
  readonly pool: Pool;
  readonly notifications: Notifications;
  readonly secretCipher: SecretCipher;
  readonly connect: buildConnector.connector;
  readonly logger: Logger;
  /** Default: `LIMITS`. */
  readonly limits?: Partial<Limits>;
}

const LIMITS: Readonly<Limits> = {
  requestsPerEndpoint: 50,
  requests: 1_000,
  queuedPerEndpoint: 150,
  bytesPerEndpoint: 2 ** 20,
  bytes: 64 * 2 ** 20,
  endpoints: 2_000,
  leaseMs: 30_000,
  timeoutMs: TIMEOUT_MS,
  graceMs: 5_000,
};

interface Limits {
  /** Concurrent requests to one endpoint: enough for 100 a second to an endpoint that takes half a second. */
  requestsPerEndpoint: number;
  /**
   * Concurrent requests to all endpoints that are not throttled: each takes a file descriptor and memory. Beyond that
   * an endpoint gets an equal share of them, at least one, so that slow endpoints don't keep others from being sent to.
   */
  requests: number;
  /** Deliveries of one endpoint that are queued in this process. */
  queuedPerEndpoint: number;
  /**
   * Bodies in the memory of this process: of one endpoint, which may exceed this by one, and of all. Beyond that an
   * endpoint without any gets one at a time, so that no account's deliveries keep others from being sent.
   */
  bytesPerEndpoint: number;
  bytes: number;
  /**
   * Working endpoints that one process leases, and throttled ones: these may all hang, and must not take the place of
   * those.
   */
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
export function startDeliverer(options: DelivererOptions): Deliverer {
  const { pool, notifications, secretCipher, connect, logger } = options;
  const limits = { ...LIMITS, ...options.limits };
  const queue = queueOf(pool, newUuid(), limits.leaseMs, secretCipher.keyIds);
  const leased = leasedEndpoints(secretCipher, logger);
  const completed = completedAttempts({ pool, queue, leased, logger });
  const stopping = new AbortController();
  const wakeup = notifications.wakeup('webhooks', POLL_MS);
  const sender = createSender({
    pool,
    leased,
    completed,
    connect,
    logger,
    requestsPerEndpoint: limits.requestsPerEndpoint,
    requests: limits.requests,
    timeoutMs: limits.timeoutMs,
    stopping: stopping.signal,
    onAttempt: () => wakeup.notify(),
  });
  let renewedAt = performance.now();
  const reportFailure = throttledFailures((fields) =>
    logger.warn(fields, 'delivering webhooks failed; it is retried in a second'),
  );

  async function fetchDue(): Promise<void> {
    const capacities = leased.capacities({
      low: limits.requestsPerEndpoint,
      most: limits.queuedPerEndpoint,
      bytes: limits.bytesPerEndpoint,
    });
    if (capacities.length === 0) return;
    const fetched = capacities.flatMap(({ id }) => leased.get(id)?.fetched.ids ?? []);
    let bytes = limits.bytes;
    for (const endpoint of leased.values()) bytes -= endpoint.fetched.size;
    for (const delivery of await queue.due(capacities, fetched, bytes)) {
      const endpoint = leased.get(delivery.endpoint_id);
      endpoint?.fetched.add(delivery);
      endpoint?.queued.push(delivery);
    }
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
      const leasedUntil = performance.now() + limits.leaseMs;
      leased.applyRenewal(await queue.renew([...leased.keys()]), leasedUntil);
      renewedAt = performance.now();
    }
    // Postgres's lease begins later, when the statement arrives.
    const leasedUntil = performance.now() + limits.leaseMs;
    for (const row of await queue.claim(freePlaces())) leased.put(row, leasedUntil);
    await fetchDue();
    sender.sendQueued();
    await release(await sender.sendThrottled());
    await releaseIdle(LINGER_MS);
    if (leased.size > 0) return POLL_MS;
    const nextDue = await queue.nextDue();
    return nextDue === undefined ? undefined : Math.max(nextDue, POLL_MS);
  }

  const delivering = repeatUntilStopped(
    async (signal) => {
      const wait = await iterate();
      await pause(PAUSE_MS, signal);
      await wakeup.wait(wait);
    },
    { retryMs: RETRY_MS, onError: reportFailure, onStop: () => wakeup.notify() },
  );

  return {
    async stop() {
      stopping.abort();
      await delivering.stop();
      await sender.finish(limits.graceMs);
      try {
        await completed.record();
        await releaseIdle(0);
      } catch (error) {
        logger.warn({ err: error }, 'webhook attempts could not be recorded and will be repeated');
      }
      await sender.close();
    },
  };
}
