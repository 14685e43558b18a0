import { isDeepStrictEqual } from 'node:util';
import type { ScopeMetrics } from '@opentelemetry/sdk-metrics';
import type { Logger } from 'pino';
import { flushLog } from '../../common/runtime/logger.ts';
import { onTicks, TICK_MS } from '../clock/ticks.ts';
import type { FollowerStatus } from '../redirect/routes/follow-routes.ts';
import type { ShipperStatus } from '../redirect/spool/ship-scans.ts';
import type { SpoolStatus } from '../redirect/spool/spool.ts';

/**
 * The gateway consists of three kinds of processes. The main process (`main.ts`) starts the others, restarts them when
 * they die, and forwards their messages. Workers (`worker.ts`) answer requests. The carrier (`carrier.ts`) copies
 * routes from the log into the route table and scans from the spools to the log.
 */

/**
 * From a worker, through the main process, to all workers: a changed code that the disk did not take, to serve from
 * memory.
 */
interface UnwrittenRoute {
  readonly type: 'unwritten';
  readonly shortCode: string;
  readonly record: Uint8Array;
}

/** A message from a worker or the carrier to the main process. */
export type MessageToMain =
  /** It has started. */
  | { readonly type: 'ready' }
  /** It has closed its port, in answer to `close`. */
  | { readonly type: 'closed' }
  /** It can't start, for a reason that an operator has to fix. */
  | { readonly type: 'failed'; readonly sentence: string }
  | { readonly type: 'status'; readonly worker: WorkerStatus }
  | { readonly type: 'status'; readonly carrier: CarrierStatus }
  /** A worker offers frames of scans that it can't write to disk. */
  | { readonly type: 'offered'; readonly offer: string; readonly frames: Uint8Array }
  /** The carrier has published the frames of that offer. */
  | { readonly type: 'published'; readonly worker: number; readonly offer: string }
  | UnwrittenRoute
  /** Its metrics, in answer to `collect`. */
  | { readonly type: 'metrics'; readonly collection: number; readonly scopes: readonly ScopeMetrics[] };

/** A message from the main process to a worker or the carrier. */
export type MessageFromMain =
  /**
   * To workers: `/readyz` answers 503, and each connection is closed after its next response; new ones are accepted.
   */
  | { readonly type: 'drain' }
  /** To workers: stop listening, but serve the open connections. `isInherited`: another process keeps the sockets. */
  | { readonly type: 'close'; readonly isInherited: boolean }
  /** Finish the current work and exit. */
  | { readonly type: 'stop' }
  /** The status of all processes. */
  | { readonly type: 'state'; readonly state: GatewayState }
  /** To the carrier: frames that a worker offers. */
  | { readonly type: 'offered'; readonly worker: number; readonly offer: string; readonly frames: Uint8Array }
  /** To the worker: the frames of this offer, made by it or its predecessor, were published. */
  | { readonly type: 'published'; readonly offer: string }
  | UnwrittenRoute
  /** Send your metrics. */
  | { readonly type: 'collect'; readonly collection: number };

/** The status of a worker. */
export interface WorkerStatus {
  /** The number of scans answered since its start. */
  readonly answered: number;
  /** See `RouteTable.isComplete`. */
  readonly isTableComplete: boolean;
  readonly spool: SpoolStatus;
}

/** The status of the carrier. */
export interface CarrierStatus {
  readonly shipping: ShipperStatus;
  readonly routes: FollowerStatus;
  /** Whether the log responds. */
  readonly log: boolean;
}

/** The last reported status of all processes. */
export interface GatewayState {
  /** Undefined while the carrier is not running. */
  readonly carrier: CarrierStatus | undefined;
  readonly workers: readonly WorkerStatus[];
}

/** How often processes report their status if it has changed, and how often otherwise, in ms. */
export const STATUS_MS = TICK_MS;
const ALIVE_MS = 5_000;

/** Sends a message to the main process if it is still running; resolves when the message was sent. */
export function sendToMain(message: MessageToMain): Promise<void> {
  return new Promise((resolve) => {
    if (process.send && process.connected) process.send(message, undefined, undefined, () => resolve());
    else resolve();
  });
}

/** Reports the status of this process to the main process, until the returned function is called. */
export function reportStatus(statusOf: () => Omit<Extract<MessageToMain, { type: 'status' }>, 'type'>): () => void {
  let sent: unknown;
  let sentAt = 0;
  return onTicks(STATUS_MS, () => {
    const status = statusOf();
    if (isDeepStrictEqual(status, sent) && performance.now() - sentAt < ALIVE_MS) return;
    sent = status;
    sentAt = performance.now();
    sendToMain({ type: 'status', ...status } as MessageToMain);
  });
}

/** Calls `handle` with each message from the main process. */
export function onMessageFromMain(handle: (message: MessageFromMain) => void): void {
  process.on('message', handle);
}

/** Resolves with the first message of a type from the main process. */
export function messageFromMain<Type extends MessageFromMain['type']>(
  type: Type,
): Promise<Extract<MessageFromMain, { type: Type }>> {
  return new Promise((resolve) => {
    onMessageFromMain((message) => {
      if (message.type === type) resolve(message as Extract<MessageFromMain, { type: Type }>);
    });
  });
}

/**
 * Resolves when the main process sends `stop`. Signals are ignored, because a terminal sends them to all processes and
 * the main process handles them. When the main process is gone, this one exits at once, without Node's exit handlers,
 * which could take long: everything that matters is on disk, and the next gateway may start at any moment.
 */
export function stopRequested(logger: Logger): Promise<unknown> {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
  process.once('disconnect', async () => {
    logger.warn('the gateway’s main process is gone; this process exits too');
    await flushLog(logger);
    process.kill(process.pid, 'SIGKILL');
  });
  return messageFromMain('stop');
}
