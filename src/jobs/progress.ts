import type { HandlerContext } from '@connectrpc/connect';
import type { Logger } from 'pino';
import { failure } from '../../common/contract/errors.ts';
import { METADATA } from '../../common/contract/metadata.ts';
import { pause } from '../../common/runtime/pause.ts';
import { accountStreams } from '../calls/account-streams.ts';
import { releaseSlot } from '../calls/message-slot.ts';

/** How often watched work is read, in ms. */
const WATCH_INTERVAL_MS = 200;

/**
 * How often a request checks whether its work is completed: soon at first, as most is small; the pause doubles, in ms.
 */
const POLL_MS = { first: 5, last: 50 };

/** How long before its deadline a request stops waiting, in ms: time to answer, and to store the answer for its key. */
const ANSWER_MS = 1_000;

/** Work in the background as its row describes it. */
export interface BackgroundWork {
  /** Rows before this index are final. */
  readonly position: number;
  /** When its last row became final; null until then. */
  readonly completedAt?: Date | null | undefined;
}

/** Whether every row of the work is final. */
export function isCompleted({ completedAt }: BackgroundWork): boolean {
  return completedAt != null;
}

/** Work that is followed until it is completed. */
export interface FollowedWork<Item extends BackgroundWork> {
  /** Reads it again. */
  read(): Promise<Item>;
  /** Whether its account is open; the work of a closed one never continues. */
  isOpen(): Promise<boolean>;
}

/** The time in which requests wait for the work that they have scheduled, before they answer that it continues. */
export interface RequestWindow {
  /** When the window of a request that begins now closes, before its deadline, of `performance.now()`. */
  closes(call: Pick<HandlerContext, 'timeoutMs'>): number;
  /**
   * Waits until the background workers have completed the work, at most until `closes` and while the account is open;
   * returns it as it is then. Never fails once the work is stored. Meanwhile the caller's next large message can be
   * read.
   */
  wait<Item extends BackgroundWork>(
    stored: Item,
    work: FollowedWork<Item>,
    closes: number,
    call: Pick<HandlerContext, 'requestHeader' | 'signal' | 'values'>,
  ): Promise<Item>;
}

/**
 * `connections`: of the pool. As many requests may wait at a time, but only a quarter of that with an idempotency key,
 * each of which holds a connection meanwhile. Further ones answer at once.
 */
export function requestWindow(options: {
  windowMs: number;
  connections: number;
  logger: Logger;
  /** Aborts when the process begins to stop: requests no longer wait. */
  stopping: AbortSignal;
}): RequestWindow {
  const { windowMs, connections, logger, stopping } = options;
  const mostHeld = Math.ceil(connections / 4);
  let [waiting, held] = [0, 0];
  return {
    closes(call) {
      const timeoutMs = call.timeoutMs() ?? Number.POSITIVE_INFINITY;
      return performance.now() + Math.min(windowMs, timeoutMs - ANSWER_MS);
    },
    async wait(stored, { read, isOpen }, closes, call) {
      releaseSlot(call);
      let current = stored;
      const holds = Number(call.requestHeader.has(METADATA.idempotencyKey));
      if (waiting >= connections || held + holds > mostHeld) return current;
      waiting += 1;
      held += holds;
      const signal = AbortSignal.any([stopping, call.signal]);
      try {
        let wait = POLL_MS.first;
        while (!isCompleted(current) && performance.now() < closes && !signal.aborted) {
          await pause(wait, signal);
          wait = Math.min(wait * 2, POLL_MS.last);
          current = await read();
          // Most work is completed by then.
          if (wait === POLL_MS.last && !(await isOpen())) break;
        }
      } catch (error) {
        logger.warn({ err: error }, 'a request could not wait for its background work');
      } finally {
        waiting -= 1;
        held -= holds;
      }
      return current;
    },
  };
}

/** Follows work of an account until it is completed, or until `call` aborts. `accountId`: UUID. */
export type Watch = <Item extends BackgroundWork>(
  accountId: string,
  work: FollowedWork<Item>,
  call: AbortSignal,
) => AsyncGenerator<Item>;

/** Concurrent streams of an account in this process: each reads its work five times a second until it is completed. */
const MOST_STREAMS = 50;

/**
 * Streams that yield work now and whenever its position changes. Fail with STOPPING when the process begins to stop
 * (`stopping`), since a stream that just ends looks completed, with NOT_FOUND once the account is closed, and with
 * UNAVAILABLE beyond `MOST_STREAMS`.
 */
export function workStreams(stopping: AbortSignal): Watch {
  const streams = accountStreams(MOST_STREAMS, 'streams');
  return (accountId, work, call) => streams(accountId, follow(work, call, stopping));
}

async function* follow<Item extends BackgroundWork>(
  { read, isOpen }: FollowedWork<Item>,
  call: AbortSignal,
  stopping: AbortSignal,
): AsyncGenerator<Item> {
  const signal = AbortSignal.any([call, stopping]);
  let lastPosition = -1;
  while (!signal.aborted) {
    const current = await read();
    if (current.position !== lastPosition || isCompleted(current)) yield current;
    if (isCompleted(current)) return;
    lastPosition = current.position;
    if (!(await isOpen())) throw failure('NOT_FOUND', 'The account is closed.');
    await pause(WATCH_INTERVAL_MS, signal);
  }
  if (!call.aborted) throw failure('STOPPING', 'The core is stopping; watch again.');
}
