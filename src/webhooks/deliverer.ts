import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import { Agent, type buildConnector } from 'undici';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import type { Notifications } from '../../common/postgres/notifications.ts';
import { attempt, type Outcome, TIMEOUT_MS } from './attempt.ts';
import { type Attempts, type BudgetKey, payBackBudgets, spendBudgets } from './attempt-budgets.ts';
import { giveUp, hopeless } from './disable-policy.ts';
import { type Held, holdings, isLimited } from './leased-endpoints.ts';
import { type DueRow, queueOf, type Result } from './queue.ts';
import { retryIn } from './schedule.ts';
import type { Seal } from './seal.ts';

/** An attempt that is to be recorded. */
interface Answered {
  readonly to: Held;
  /** Where it was made: the endpoint's address may have been changed meanwhile. */
  readonly url: string;
  readonly what: DueRow;
  readonly result: Result;
  /** What it was taken from; undefined when nothing limited it. */
  readonly budget: BudgetKey | undefined;
}

/** Makes the deliveries that wait. */
export interface Deliverer {
  /** Waits for the attempts in hand for some seconds, records them and gives the endpoints back. */
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

export const LIMITS: Readonly<Limits> = {
  perEndpoint: 50,
  fetched: 150,
  endpoints: 2_000,
  lease: 30_000,
  timeout: TIMEOUT_MS,
  grace: 5_000,
};

interface Limits {
  /** Requests to one endpoint at a time: enough for 100 a second to one that takes half a second. */
  perEndpoint: number;
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

/** How often to look for deliveries to endpoints that are held, and for endpoints while notifications don't arrive. */
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
export function startDeliverer({
  pool,
  notifications,
  seal,
  connect,
  logger,
  ...options
}: DelivererOptions): Deliverer {
  const limits = { ...LIMITS, ...options.limits };
  const queue = queueOf(pool, newUuid(), limits.lease);
  // Without limits of its own: endpoints that share a host must not wait for one another.
  const agent = new Agent({ connect, connections: null, headersTimeout: 0, bodyTimeout: 0 });
  const held = holdings(seal, logger);
  const answered: Answered[] = [];
  const stopping = new AbortController();
  const aborting = new AbortController();
  let renewedAt = performance.now();
  const bell = notifications.bell('webhooks', IDLE_MS);

  const pause = (ms: number) => sleep(ms, undefined, { signal: stopping.signal }).catch(() => undefined);

  function launch(to: Held): void {
    while (!isLimited(to.row) && to.out < limits.perEndpoint && !stopping.signal.aborted) {
      const what = to.waiting.shift();
      if (!what) return;
      void send(to, what);
    }
  }

  async function send(to: Held, what: DueRow): Promise<void> {
    to.out++;
    const { url } = to.row;
    const budget = isLimited(to.row) ? budgetOf(to) : undefined;
    const sending = { url, secrets: to.secrets, id: encodeId('evt', what.event_id), body: what.body };
    const outcome = await attempt(agent, sending, { stop: aborting.signal, timeoutMs: limits.timeout });
    to.out--;
    if (outcome) answered.push({ to, url, what, result: resultOf(what, outcome), budget });
    else to.inHand.delete(what.id);
    // What fails waits until that is recorded: endpoints that refuse connections would get all that was fetched.
    if (outcome && isSuccess(outcome)) launch(to);
    bell.ring();
  }

  async function record(): Promise<void> {
    const told = answered.slice();
    if (told.length === 0) return;
    const verdicts = [...Map.groupBy(told, ({ to, url }) => `${to.row.id} ${url}`).values()].flatMap((answers) =>
      answers.slice(0, 1).map(({ to, url }) => ({
        id: to.row.id,
        url,
        succeeded: answers.some(({ result }) => result.became === 'succeeded'),
      })),
    );
    const changed = await queue.record(
      told.map(({ result }) => result),
      verdicts,
    );
    answered.splice(0, told.length);
    for (const { to, what } of told) {
      to.inHand.delete(what.id);
      to.busyAt = performance.now();
    }
    for (const row of changed) if (held.has(row.id)) held.hold(row);
    for (const [{ row }, answers] of Map.groupBy(told, ({ to }) => to)) {
      const reason = hopeless(
        row,
        answers.filter(({ url }) => url === row.url).map(({ result }) => result),
      );
      if (reason === undefined) continue;
      await giveUp(pool, row, reason);
      logger.info({ endpoint: encodeId('hook', row.id), reason }, 'a webhook endpoint was disabled');
      held.drop(row.id);
    }
    const succeeded = told.filter(({ result }) => result.became === 'succeeded');
    const paidBack = together(succeeded.flatMap(({ budget }) => budget ?? []));
    if (paidBack.length > 0) await payBackBudgets(pool, paidBack);
  }

  async function fetch(): Promise<void> {
    const rooms = held.rooms(limits.perEndpoint, limits.fetched);
    if (rooms.length === 0) return;
    const inHand = rooms.flatMap(({ id }) => [...(held.get(id)?.inHand ?? [])]);
    for (const what of await queue.due(rooms, inHand)) {
      const to = held.get(what.endpoint_id);
      to?.inHand.add(what.id);
      to?.waiting.push(what);
    }
    for (const to of held.values()) launch(to);
  }

  /** Makes the attempts that budgets allow for, and gives the other endpoints back until theirs may. */
  async function attemptLimited(): Promise<void> {
    const limited = [...held.values()].filter(({ row, waiting }) => isLimited(row) && waiting.length > 0);
    if (limited.length === 0) return;
    const asking = Map.groupBy(limited, (to) => budgetName(budgetOf(to)));
    const denied = new Map<string, number>();
    for (const { granted, wait, ...budget } of await spendBudgets(pool, together(limited.map(budgetOf)))) {
      for (const [index, to] of (asking.get(budgetName(budget)) ?? []).entries()) {
        const what = to.waiting.shift();
        if (!what) continue;
        if (index < granted) void send(to, what);
        else {
          to.inHand.delete(what.id);
          denied.set(to.row.id, wait);
        }
      }
    }
    await giveBack(denied);
  }

  async function giveBack(endpoints: ReadonlyMap<string, number | null>): Promise<void> {
    if (endpoints.size === 0) return;
    await queue.release(endpoints);
    for (const id of endpoints.keys()) held.drop(id);
  }

  const release = (idleFor: number) => giveBack(new Map(held.idle(idleFor).map((id) => [id, null])));

  /** Looks once; returns for how long to wait at most for a notification, in ms. */
  async function turn(): Promise<number | undefined> {
    await record();
    if (performance.now() - renewedAt > limits.lease / RENEWALS && held.size > 0) {
      held.renewed(await queue.renew([...held.keys()]));
      renewedAt = performance.now();
    }
    for (const row of await queue.claim(limits.endpoints - held.size)) held.hold(row);
    await fetch();
    await attemptLimited();
    await release(LINGER_MS);
    if (held.size > 0) return IDLE_MS;
    const due = await queue.next();
    return due === undefined ? undefined : Math.max(due, IDLE_MS);
  }

  const running = (async () => {
    while (!stopping.signal.aborted) {
      try {
        const wait = await turn();
        await pause(PAUSE_MS);
        await bell.wait(wait);
      } catch (error) {
        logger.warn({ err: error }, 'webhook deliveries wait; they are tried again in a second');
        await pause(RETRY_MS);
      }
    }
  })();

  return {
    async stop() {
      stopping.abort();
      bell.ring();
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

function budgetOf({ row, host }: Held): BudgetKey {
  return { account: row.account_id, host };
}

function budgetName({ account, host }: BudgetKey): string {
  return `${account} ${host}`;
}

/** How many attempts of each budget. */
function together(budgets: readonly BudgetKey[]): Attempts[] {
  return [...Map.groupBy(budgets, budgetName).values()].flatMap((same) =>
    same.slice(0, 1).map(({ account, host }) => ({ account, host, attempts: same.length })),
  );
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
