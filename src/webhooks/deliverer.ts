import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { Agent, type buildConnector } from 'undici';
import { encodeId, newUuid } from '../contract/ids.ts';
import { attempt, type Outcome, TIMEOUT_MS } from './attempt.ts';
import { type Held, holdings } from './held.ts';
import { giveUp, hopeless } from './hopeless.ts';
import { type DueRow, queueOf, type Result } from './queue.ts';
import { retryIn } from './schedule.ts';
import type { Seal } from './seal.ts';

/** Makes the deliveries that wait. */
export interface Deliverer {
  /** There may be something new: look at once. Only a hint; it looks ten times a second anyhow. */
  wake(): void;
  /** Waits for the attempts in hand for some seconds, records them and gives the endpoints back. */
  stop(): Promise<void>;
}

export interface DelivererOptions {
  readonly pool: Pool;
  readonly seal: Seal;
  readonly connect: buildConnector.connector;
  readonly logger: Logger;
  /** Default: `LIMITS`. */
  readonly limits?: Partial<Limits>;
}

export const LIMITS: Readonly<Limits> = {
  perEndpoint: 50,
  perFailing: 5,
  fetched: 150,
  endpoints: 2_000,
  lease: 30_000,
  timeout: TIMEOUT_MS,
  grace: 5_000,
};

interface Limits {
  /** Requests to one endpoint at a time: enough for 100 a second to one that takes half a second. */
  perEndpoint: number;
  /** The same while its last answers were failures: what hangs must not hold many connections. */
  perFailing: number;
  /** Deliveries of one endpoint that wait in this process. */
  fetched: number;
  /** Endpoints that one process holds: more than hang at a time. */
  endpoints: number;
  /** ms after which another process takes the endpoints of one that died. */
  lease: number;
  /** How long an endpoint may take to answer, in ms. */
  timeout: number;
  /** How long attempts in hand may take when the process stops, in ms. */
  grace: number;
}

const IDLE_MS = 100;
/** Between two looks: what is answered meanwhile is recorded together. */
const PAUSE_MS = 10;
const RETRY_MS = 1_000;
/** An endpoint with nothing to do is kept so long: the next delivery finds it held. */
const LINGER_MS = 1_000;
/** How soon a change of an endpoint reaches the process that holds it, as a share of the lease. */
const RENEWALS = 6;

/**
 * Delivers to the endpoints that this process holds, as one of any number of processes. Answers are recorded together;
 * what a crash leaves unrecorded is sent once more, under the same `webhook-id`.
 */
export function startDeliverer({ pool, seal, connect, logger, ...options }: DelivererOptions): Deliverer {
  const limits = { ...LIMITS, ...options.limits };
  const queue = queueOf(pool, newUuid(), limits.lease);
  // Without limits of its own: endpoints that share a host must not wait for one another.
  const agent = new Agent({ connect, connections: null, headersTimeout: 0, bodyTimeout: 0 });
  const held = holdings(seal, logger);
  const answered: { to: Held; what: DueRow; outcome: Outcome }[] = [];
  const stopping = new AbortController();
  const aborting = new AbortController();
  let renewedAt = performance.now();
  let woken = false;
  let wake = () => {};

  const pause = (ms: number) => sleep(ms, undefined, { signal: stopping.signal }).catch(() => undefined);

  function look(): void {
    woken = true;
    wake();
  }

  function launch(to: Held): void {
    const most = to.row.failing_since === null ? limits.perEndpoint : limits.perFailing;
    while (to.out < most && !stopping.signal.aborted) {
      const what = to.waiting.shift();
      if (!what) return;
      void send(to, what);
    }
  }

  async function send(to: Held, what: DueRow): Promise<void> {
    to.out++;
    const sending = { url: to.row.url, secrets: to.secrets, id: encodeId('evt', what.event_id), body: what.body };
    const outcome = await attempt(agent, sending, { stop: aborting.signal, timeoutMs: limits.timeout });
    to.out--;
    if (outcome) answered.push({ to, what, outcome });
    else to.inHand.delete(what.id);
    launch(to);
    look();
  }

  async function record(): Promise<void> {
    const told = answered.slice();
    if (told.length === 0) return;
    const byEndpoint = Map.groupBy(told, ({ to }) => to);
    const succeeded = new Map(
      [...byEndpoint].map(([{ row }, answers]) => [row.id, answers.some(({ outcome }) => isSuccess(outcome))]),
    );
    const turned = await queue.record(
      told.map(({ what, outcome }) => resultOf(what, outcome)),
      succeeded,
    );
    answered.splice(0, told.length);
    for (const { to, what } of told) {
      to.inHand.delete(what.id);
      to.busyAt = performance.now();
    }
    for (const { id, failing_since } of turned) {
      const to = held.get(id);
      if (to) to.row = { ...to.row, failing_since };
    }
    for (const [{ row }, answers] of byEndpoint) {
      const reason = hopeless(row.failing_since, answers);
      if (reason === undefined) continue;
      await giveUp(pool, row, reason);
      logger.info({ endpoint: encodeId('hook', row.id), reason }, 'a webhook endpoint was disabled');
      held.drop(row.id);
    }
  }

  async function fetch(): Promise<void> {
    const room = held.room(limits.perEndpoint, limits.fetched);
    if (room.size === 0) return;
    const inHand = [...room.keys()].flatMap((id) => [...(held.get(id)?.inHand ?? [])]);
    for (const what of await queue.due(room, inHand)) {
      const to = held.get(what.endpoint_id);
      to?.inHand.add(what.id);
      to?.waiting.push(what);
    }
    for (const to of held.values()) launch(to);
  }

  async function release(idleFor: number): Promise<void> {
    const idle = held.idle(idleFor);
    if (idle.length === 0) return;
    await queue.release(idle);
    for (const id of idle) held.drop(id);
  }

  async function turn(): Promise<void> {
    await record();
    if (performance.now() - renewedAt > limits.lease / RENEWALS && held.size > 0) {
      held.renewed(await queue.renew([...held.keys()]));
      renewedAt = performance.now();
    }
    for (const row of await queue.claim(limits.endpoints - held.size)) held.hold(row);
    await fetch();
    await release(LINGER_MS);
  }

  const running = (async () => {
    while (!stopping.signal.aborted) {
      const next = new Promise<void>((resolve) => {
        wake = resolve;
      });
      woken = false;
      try {
        await turn();
        await pause(PAUSE_MS);
        if (!woken) await Promise.race([next, pause(IDLE_MS)]);
      } catch (error) {
        logger.warn({ err: error }, 'webhook deliveries wait; they are tried again in a second');
        await pause(RETRY_MS);
      }
    }
  })();

  return {
    wake: look,
    async stop() {
      stopping.abort();
      await running;
      for (const to of held.values()) for (const { id } of to.waiting.splice(0)) to.inHand.delete(id);
      const grace = setTimeout(() => aborting.abort(), limits.grace);
      while ([...held.values()].some(({ out }) => out > 0)) await sleep(PAUSE_MS);
      clearTimeout(grace);
      try {
        await record();
        await release(0);
      } catch (error) {
        logger.warn({ err: error }, 'webhook attempts were not recorded and are made again');
      }
      await agent.destroy();
    },
  };
}

function isSuccess({ status }: Pick<Outcome, 'status'>): boolean {
  return status !== null && status >= 200 && status < 300;
}

function resultOf({ id, attempts }: DueRow, outcome: Outcome): Result {
  const succeeded = isSuccess(outcome);
  const delay = succeeded ? null : retryIn(attempts + 1);
  const became = succeeded ? 'succeeded' : delay === null ? 'failed' : 'pending';
  return { ...outcome, delivery: id, attempts, became, retryIn: delay };
}
