import type { Logger } from 'pino';
import { flushLog } from '../../common/runtime/logger.ts';
import type { FollowerStatus } from '../redirect/routes/follow-routes.ts';
import type { ShipperStatus } from '../redirect/spool/ship-scans.ts';
import type { SpoolStatus } from '../redirect/spool/spool.ts';

/**
 * The gateway is three kinds of processes. The first one starts the others, starts those again that die, and passes on
 * what they have to tell each other: `main.ts`. Workers answer requests: `worker.ts`. The carrier brings routes from the
 * log into the table and scans from the spools to the log: `carrier.ts`.
 */

/** What a worker or the carrier tells the first process. */
export type Told =
  /** It does its work. */
  | { readonly type: 'ready' }
  /** It takes no more connections, as it was told to. */
  | { readonly type: 'closed' }
  /** It can't, for a reason that only a person can mend. */
  | { readonly type: 'failed'; readonly sentence: string }
  | { readonly type: 'status'; readonly worker: WorkerStatus }
  | { readonly type: 'status'; readonly carrier: CarrierStatus }
  /** A worker has frames of scans that the disk does not take. */
  | { readonly type: 'held'; readonly offer: string; readonly frames: Uint8Array }
  /** The log has them. */
  | { readonly type: 'taken'; readonly worker: number; readonly offer: string };

/** What the first process tells them. */
export type Order =
  /** To workers: to take no more connections, and go on with those that there are. */
  | { readonly type: 'close' }
  /** To finish what is in hand, and end. */
  | { readonly type: 'stop' }
  /** How all of them are. */
  | { readonly type: 'state'; readonly state: GatewayState }
  /** To the carrier: frames of a worker. */
  | { readonly type: 'held'; readonly worker: number; readonly offer: string; readonly frames: Uint8Array }
  /** To the worker: the log has what it, or the one before it, offered under this name. */
  | { readonly type: 'taken'; readonly offer: string };

/** How a worker is. */
export interface WorkerStatus {
  /** Scans that it has answered since its start. */
  readonly answered: number;
  readonly spool: SpoolStatus;
}

/** How the carrier is. */
export interface CarrierStatus {
  readonly shipping: ShipperStatus;
  readonly routes: FollowerStatus;
  /** Whether the log answers. */
  readonly log: boolean;
}

/** How the processes are, as they said it last. */
export interface GatewayState {
  /** Undefined while there is none. */
  readonly carrier: CarrierStatus | undefined;
  readonly workers: readonly WorkerStatus[];
}

/** How often they say how they are, in ms. */
export const STATUS_MS = 500;

/** Tells the first process something, if it is still there; resolves when that has left. */
export function tell(message: Told): Promise<void> {
  return new Promise((resolve) => {
    if (process.send && process.connected) process.send(message, undefined, undefined, () => resolve());
    else resolve();
  });
}

/** Calls `handle` with each order. */
export function onOrder(handle: (order: Order) => void): void {
  process.on('message', handle);
}

/**
 * Resolves when the first process says so. Signals are its business: a terminal sends them to all of us. When it is gone
 * we end at once and without Node's exit handlers, which could take long: all that matters is on disk, and its successor
 * may start at any moment.
 */
export function toldToStop(logger: Logger): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
  process.once('disconnect', () => {
    logger.warn('the gateway’s first process is gone; this one ends too');
    flushLog(logger);
    process.kill(process.pid, 'SIGKILL');
  });
  return new Promise((resolve) => {
    onOrder(({ type }) => {
      if (type === 'stop') resolve();
    });
  });
}
