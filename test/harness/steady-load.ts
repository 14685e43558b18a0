import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';

/** Requests that are sent at a constant rate, however long their answers take, until the test ends at the latest. */
export interface SteadyLoad {
  /** Requests sent. */
  readonly sent: number;
  /** Requests that succeeded. */
  readonly succeeded: number;
  /** Failures, by what failed and why. */
  readonly failed: ReadonlyMap<string, number>;
  /** Sends no more; resolves when all are answered. */
  stop(): Promise<void>;
}

/** Sends the requests in turn; each must reject if it fails. Keys: what they are, for messages. */
export function startLoad(perSecond: number, requests: Readonly<Record<string, () => Promise<unknown>>>): SteadyLoad {
  const turns = Object.entries(requests);
  const failed = new Map<string, number>();
  const load = { sent: 0, succeeded: 0, failed };
  const pending = new Set<Promise<void>>();
  let going = true;

  function sendNext(): void {
    const [name, send] = turns[load.sent++ % turns.length] ?? ['nothing', async () => undefined];
    const answered = send().then(
      () => void load.succeeded++,
      (error: NodeJS.ErrnoException) => {
        const failure = `${name}: ${error.message}`;
        failed.set(failure, (failed.get(failure) ?? 0) + 1);
      },
    );
    pending.add(answered);
    answered.finally(() => pending.delete(answered));
  }

  const sending = (async () => {
    const start = performance.now();
    while (going) {
      const due = ((performance.now() - start) / 1_000) * perSecond;
      while (load.sent < due) sendNext();
      await sleep(1_000 / perSecond);
    }
  })();
  const stop = async () => {
    going = false;
    await sending;
    await Promise.all(pending);
  };
  onTestFinished(stop);
  return Object.assign(load, { stop });
}
