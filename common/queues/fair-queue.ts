import { ConnectError } from '@connectrpc/connect';
import { failure } from '../contract/errors.ts';

/**
 * Runs `work` when it is the caller's turn; rejects if `signal` aborts before, or with UNAVAILABLE if the queue is
 * full. The turn ends with the work, or earlier when that calls `endTurn`.
 */
export type FairQueue = <Result>(
  caller: string,
  signal: AbortSignal | undefined,
  work: (endTurn: () => void) => Promise<Result>,
) => Promise<Result>;

/** The waiting work of one caller, and the number of its pieces of work that are running. */
interface Queue {
  readonly waiting: Set<Waiting>;
  running: number;
}

interface Waiting {
  start(): void;
  /** Removes it from the queue with an error. */
  reject(error: unknown): void;
}

/**
 * Creates a fair queue: at most `concurrency` pieces of work run at a time, at most `concurrencyPerCaller` of one
 * caller. Callers are served round-robin: one with a single piece of work waits for one of each other caller, not for
 * all of theirs. Once `maxWaiting` wait, the newest of the caller with the most waiting work is rejected, so that no
 * caller can fill the queue for the others.
 *
 * `caller`: the authenticated caller; with anything unproven, one client could pose as many callers. `items`: the name
 * of the work in the error sentence. `timeout`: how long work waits at most, in ms, and the error it then fails with.
 */
export function fairQueue(options: {
  concurrency: number;
  concurrencyPerCaller?: number;
  maxWaiting: number;
  items: string;
  timeout?: { readonly ms: number; readonly error: () => Error };
}): FairQueue {
  const { concurrency, concurrencyPerCaller = concurrency, maxWaiting, items, timeout } = options;
  /** By caller with running or waiting work; the one that was served last is last. */
  const queues = new Map<string, Queue>();
  let running = 0;
  let waitingCount = 0;

  function wait(queue: Queue, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        queue.waiting.delete(waiting);
        waitingCount--;
        signal?.removeEventListener('abort', abort);
        clearTimeout(timer);
      };
      const waiting: Waiting = {
        start() {
          leave();
          resolve();
        },
        reject(error) {
          leave();
          reject(error);
        },
      };
      const abort = () => waiting.reject(ConnectError.from(signal?.reason));
      const timer = timeout && setTimeout(() => waiting.reject(timeout.error()), timeout.ms);
      queue.waiting.add(waiting);
      waitingCount++;
      signal?.addEventListener('abort', abort);
      if (waitingCount > maxWaiting) rejectNewest();
    });
  }

  /** Iterates over all callers, but only while the queue is full: 20 µs for 2,000 callers. */
  function rejectNewest(): void {
    let longest: Set<Waiting> = new Set();
    // Of queues of equal length the last one: so a new caller with one piece of work is rejected, and none before it.
    for (const { waiting } of queues.values()) if (waiting.size >= longest.size) longest = waiting;
    [...longest]
      .at(-1)
      ?.reject(failure('UNAVAILABLE', `Too many ${items} are being requested at the moment; try again.`));
  }

  function begin(caller: string, queue: Queue): void {
    queue.running++;
    running++;
    // Moved to the end, so that its next turn comes after all others.
    queues.delete(caller);
    queues.set(caller, queue);
  }

  /** Starts the oldest waiting work of the next caller. */
  function startNext(): void {
    for (const [caller, queue] of queues) {
      if (running >= concurrency) return;
      const [next] = queue.waiting;
      if (!next || queue.running >= concurrencyPerCaller) continue;
      begin(caller, queue);
      next.start();
      return;
    }
  }

  return async (caller, signal, work) => {
    if (signal?.aborted) throw ConnectError.from(signal.reason);
    const queue = queues.get(caller) ?? { waiting: new Set(), running: 0 };
    queues.set(caller, queue);
    const removeIfIdle = () => {
      if (queue.running === 0 && queue.waiting.size === 0) queues.delete(caller);
    };
    if (running < concurrency && queue.running < concurrencyPerCaller) begin(caller, queue);
    else await wait(queue, signal).finally(removeIfIdle);
    let hasEnded = false;
    const endTurn = () => {
      if (hasEnded) return;
      hasEnded = true;
      queue.running--;
      running--;
      removeIfIdle();
      startNext();
    };
    try {
      return await work(endTurn);
    } finally {
      endTurn();
    }
  };
}
