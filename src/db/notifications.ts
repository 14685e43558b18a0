import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Logger } from 'pino';
import { promptQuery, promptStatement, run } from '../../common/postgres/sql.ts';
import { pause } from '../../common/runtime/pause.ts';
import { createWakeup, type Wakeup } from '../../common/runtime/wakeup.ts';

/**
 * The kinds of work that processes are notified of: outbox rows, webhook deliveries, domain checks, relabelled codes.
 */
export type NotifiedWork = 'outbox' | 'webhooks' | 'domains' | 'labels';

const CHANNEL = 'signpost_work';

/**
 * How often work is polled for without a notification, in ms, plus up to a fifth: the delay if a notification is lost,
 * for example on a connection whose peer has vanished.
 */
const FALLBACK_MS = 10_000;
/** How often to check that notifications arrive, and how long one may take, in ms. */
const CHECK_MS = 60_000;
const ARRIVAL_MS = 5_000;
/** Pauses between attempts to listen, in ms: each twice the previous one. */
const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = 30_000;

/** Sends a notification over another connection than the listening one. */
const send = promptStatement('notifications_check', `select pg_notify('${CHANNEL}', $1)`);

/** An SQL expression that notifies all processes when its transaction commits. */
export function notifying(work: NotifiedWork): string {
  return `pg_notify('${CHANNEL}', '${work}')`;
}

/** Receives notifications of committed changes, over one separate connection. */
export interface Notifications {
  /**
   * Returns a wake-up for which notifications of `work` end a wait. Waits take at most some ten seconds, and `pollMs`
   * while no notifications arrive.
   */
  wakeup(work: NotifiedWork, pollMs: number): Wakeup;
  /** Whether notifications arrive; false while Postgres or the connection is lost. */
  arriving(): boolean;
  stop(): Promise<void>;
}

/**
 * Listens for notifications over a connection with the options of `pool`, from the first call of `wakeup` on; a lost
 * connection is replaced. PgBouncer in transaction mode accepts LISTEN but forwards no notifications. So the process
 * sends one to itself at first and then every minute; until it arrives, waits poll. All waits end when notifications
 * begin to arrive, and when they are lost.
 */
export function listen(
  pool: pg.Pool,
  logger: Logger,
  { fallbackMs = FALLBACK_MS }: { readonly fallbackMs?: number } = {},
): Notifications {
  const stopping = new AbortController();
  const { signal } = stopping;
  const wakeups = new Map<NotifiedWork, Set<Wakeup>>();
  let arriving = false;
  let reported = false;
  let failures = 0;

  function setArriving(now: boolean): void {
    if (arriving === now) return;
    arriving = now;
    for (const same of wakeups.values()) for (const wakeup of same) wakeup.notify();
  }

  /** Rejects when the connection is lost or a notification does not arrive in time. */
  async function listenOnce(): Promise<void> {
    // Not a copy of the options, like in the pool itself: it would lack the password, which is not enumerable.
    const { Client = pg.Client } = pool.options as unknown as { Client?: typeof pg.Client };
    const client = new Client(pool.options);
    const lost = Promise.withResolvers<never>();
    lost.promise.catch(() => undefined);
    // The client may emit errors until its socket is closed; an unhandled one would end the process.
    client.on('error', lost.reject);
    client.on('end', () => lost.reject(new Error('the connection has ended')));
    const cancelled = new AbortController();
    try {
      await client.connect();
      await pool.options.onConnect?.(client);
      let awaited = { id: '', arrived: () => {} };
      client.on('notification', ({ payload }) => {
        if (payload === awaited.id) awaited.arrived();
        for (const wakeup of wakeups.get(payload as NotifiedWork) ?? []) wakeup.notify();
      });
      await client.query(promptQuery(`listen ${CHANNEL}`));
      while (!signal.aborted) {
        const arrival = new Promise<void>((arrived) => {
          awaited = { id: randomUUID(), arrived };
        });
        const late = sleep(ARRIVAL_MS, undefined, cancelled).then(() => {
          throw new Error('a notification did not arrive');
        });
        late.catch(() => undefined);
        await run(pool, send, [awaited.id]);
        await Promise.race([arrival, late, lost.promise]);
        if (reported) logger.info('notifications from Postgres arrive again');
        reported = false;
        failures = 0;
        setArriving(true);
        await Promise.race([pause(CHECK_MS, signal), lost.promise]);
      }
    } finally {
      cancelled.abort();
      setArriving(false);
      // Not awaited: a peer that has vanished would not answer.
      client.end().catch(() => undefined);
    }
  }

  async function keepListening(): Promise<void> {
    while (!signal.aborted) {
      try {
        await listenOnce();
      } catch (error) {
        if (signal.aborted) return;
        const { message: reason } = error as Error;
        if (!reported)
          logger.warn({ reason }, 'no notifications arrive from Postgres; work is polled for until they do');
        reported = true;
        const retryMs = Math.min(FIRST_RETRY_MS * 2 ** failures++, MAX_RETRY_MS);
        await pause(retryMs * (1 + Math.random() / 5), signal);
      }
    }
  }

  let running: Promise<void> | undefined;
  return {
    arriving: () => arriving,
    wakeup(work, pollMs) {
      const wakeup = createWakeup(() => (arriving ? fallbackMs * (1 + Math.random() / 5) : pollMs));
      running ??= keepListening();
      wakeups.set(work, (wakeups.get(work) ?? new Set()).add(wakeup));
      return wakeup;
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
