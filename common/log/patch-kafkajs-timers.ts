import { createRequire } from 'node:module';

const PATCHED = Symbol.for('signpost.kafkajs.timers');
/** The end of the throttling, in ms of the monotonic clock. */
const END = Symbol('throttledUntil');

/** The part of kafkajs's request queue that is patched here. */
interface RequestQueue {
  readonly pending: readonly unknown[];
  readonly throttledUntil: number;
  [END]: number;
}

interface RequestQueueClass {
  prototype: { scheduleCheckPendingRequests(this: RequestQueue): void };
}

/**
 * kafkajs 2.2.4 re-arms its queue's timer for ever, with a negative delay if the queue is empty: about 890 wake-ups per
 * second and connection, and from Node 24 on a TimeoutNegativeWarning (kafkajs #1704, #1751; unmerged). The timer is
 * needed only while requests wait or the broker throttles, so this patch arms it only then. The CPU usage of an idle
 * connection fell from 3–4 % of a core to 0.1 %.
 *
 * Until when a broker throttles it keeps as a time of day: if the clock was set back by an hour after a throttling of
 * 50 ms, it sent nothing for an hour. The accessor keeps that by the monotonic clock.
 */
export function patchTimers(): void {
  const requestQueue = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as RequestQueueClass;
  const { prototype } = requestQueue;
  if (Object.hasOwn(prototype, PATCHED)) return;
  const schedule = prototype.scheduleCheckPendingRequests;
  prototype.scheduleCheckPendingRequests = function (this: RequestQueue) {
    if (this.pending.length > 0 || this.throttledUntil > Date.now()) schedule.call(this);
  };
  Object.defineProperty(prototype, 'throttledUntil', {
    get(this: RequestQueue) {
      return Date.now() + this[END] - performance.now();
    },
    set(this: RequestQueue, until: number) {
      this[END] = performance.now() + until - Date.now();
    },
  });
  Object.defineProperty(prototype, PATCHED, { value: true });
}
