import { ConnectError } from '@connectrpc/connect';
import { failure } from '../contract/errors.ts';

/** Runs work when it is its caller's turn; rejects when `signal` aborts before, or when too many wait already. */
export type InTurn = <Result>(
  caller: string,
  signal: AbortSignal | undefined,
  work: () => Promise<Result>,
) => Promise<Result>;

/** Work of one caller that waits to be started, and how much of the caller's work goes on. */
interface Queue {
  readonly waiting: Set<Waiting>;
  inHand: number;
}

interface Waiting {
  start(): void;
  /** Ends the wait with an error. */
  refuse(error: unknown): void;
}

/**
 * A fair queue: at most `atOnce` pieces of work go on at a time, at most `atOnceEach` of one caller's. Callers take
 * turns: one that asks for a single thing waits for one of each other caller's, not for all that they asked for. Once
 * `mostWaiting` wait, the newest of the caller with the most in the queue is refused, so that no caller can fill the
 * queue for the others.
 *
 * `caller`: who the work is for, and somebody who has proven to be it; anything else lets one client be many callers.
 * `things`: what it is called in the sentence for those that are refused.
 */
export function turns(options: { atOnce: number; atOnceEach?: number; mostWaiting: number; things: string }): InTurn {
  const { atOnce, atOnceEach = atOnce, mostWaiting, things } = options;
  /** Of every caller with work in hand or waiting; the one that was served last stands last. */
  const queues = new Map<string, Queue>();
  let inHand = 0;
  let waitingInAll = 0;

  function wait(queue: Queue, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        queue.waiting.delete(waiting);
        waitingInAll--;
        signal?.removeEventListener('abort', abort);
      };
      const waiting: Waiting = {
        start() {
          leave();
          resolve();
        },
        refuse(error) {
          leave();
          reject(error);
        },
      };
      const abort = () => waiting.refuse(ConnectError.from(signal?.reason));
      queue.waiting.add(waiting);
      waitingInAll++;
      signal?.addEventListener('abort', abort);
      if (waitingInAll > mostWaiting) refuseNewest();
    });
  }

  /** Looks at every caller, which happens only while the queue is full: of 2,000 callers in 20 µs. */
  function refuseNewest(): void {
    let longest: Set<Waiting> = new Set();
    // Not one that is as long but came later: who is alone with one piece of work is then refused, not somebody before.
    for (const { waiting } of queues.values()) if (waiting.size >= longest.size) longest = waiting;
    [...longest].at(-1)?.refuse(failure('UNAVAILABLE', `Too many ${things} are asked for at the moment; try again.`));
  }

  function begin(caller: string, queue: Queue): void {
    queue.inHand++;
    inHand++;
    // Its next turn comes after everybody else's.
    queues.delete(caller);
    queues.set(caller, queue);
  }

  /** The place that has become free goes to the first that the next caller asked for. */
  function passOn(): void {
    for (const [caller, queue] of queues) {
      if (inHand >= atOnce) return;
      const [next] = queue.waiting;
      if (!next || queue.inHand >= atOnceEach) continue;
      begin(caller, queue);
      next.start();
      return;
    }
  }

  return async (caller, signal, work) => {
    if (signal?.aborted) throw ConnectError.from(signal.reason);
    const queue = queues.get(caller) ?? { waiting: new Set(), inHand: 0 };
    queues.set(caller, queue);
    const forget = () => {
      if (queue.inHand === 0 && queue.waiting.size === 0) queues.delete(caller);
    };
    if (inHand < atOnce && queue.inHand < atOnceEach) begin(caller, queue);
    else await wait(queue, signal).finally(forget);
    try {
      return await work();
    } finally {
      queue.inHand--;
      inHand--;
      forget();
      passOn();
    }
  };
}
