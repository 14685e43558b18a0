import { ConnectError } from '@connectrpc/connect';
import { failure } from './errors.ts';

/** Runs work when it is its caller's turn; rejects when `signal` aborts before, or when too many wait already. */
export type InTurn = <Result>(
  caller: string,
  signal: AbortSignal | undefined,
  work: () => Promise<Result>,
) => Promise<Result>;

/**
 * Work of which little goes on at a time, whoever asks for how much of it. Callers take turns: who asks for one thing
 * stands behind one of each other caller, not behind all that they asked for.
 *
 * `things`: what it is called in the sentence of the error for those that find `mostWaiting` before them.
 */
export function turns(options: { atOnce: number; mostWaiting: number; things: string }): InTurn {
  const { atOnce, mostWaiting, things } = options;
  /** The starts of each caller's work; the caller who was served last stands last. */
  const waiting = new Map<string, Set<() => void>>();
  let inHand = 0;
  let waitingInAll = 0;

  function wait(caller: string, signal: AbortSignal | undefined): Promise<void> {
    const starts = waiting.get(caller) ?? new Set();
    waiting.set(caller, starts);
    waitingInAll++;
    return new Promise((resolve, reject) => {
      const leave = () => {
        starts.delete(start);
        if (starts.size === 0) waiting.delete(caller);
        waitingInAll--;
        signal?.removeEventListener('abort', abort);
      };
      const start = () => {
        leave();
        resolve();
      };
      const abort = () => {
        leave();
        reject(ConnectError.from(signal?.reason));
      };
      starts.add(start);
      signal?.addEventListener('abort', abort);
    });
  }

  /** The place that has become free goes to the first that the next caller asked for. */
  function passOn(): void {
    const [caller, starts] = waiting.entries().next().value ?? ['', new Set()];
    const [start] = starts;
    if (!start) {
      inHand--;
      return;
    }
    waiting.delete(caller);
    waiting.set(caller, starts);
    start();
  }

  return async (caller, signal, work) => {
    if (signal?.aborted) throw ConnectError.from(signal.reason);
    if (inHand < atOnce) inHand++;
    else if (waitingInAll < mostWaiting) await wait(caller, signal);
    else throw failure('UNAVAILABLE', `Too many ${things} are asked for at the moment; try again.`);
    try {
      return await work();
    } finally {
      passOn();
    }
  };
}
