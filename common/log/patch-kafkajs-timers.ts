import { createRequire } from 'node:module';

/** The part of kafkajs's request queue that is patched here. */
interface RequestQueue {
  readonly pending: readonly unknown[];
  readonly throttledUntil: number;
}

interface RequestQueueClass {
  prototype: { scheduleCheckPendingRequests(this: RequestQueue): void };
}

const PATCHED = Symbol.for('signpost.kafkajs.timers');

/**
 * kafkajs 2.2.4 re-arms its queue's timer for ever, with a negative delay if the queue is empty: about 890 wake-ups per
 * second and connection, and from Node 24 on a TimeoutNegativeWarning (kafkajs #1704, #1751; unmerged). The timer is
 * needed only while requests wait or the broker throttles, so this patch arms it only then. The CPU usage of an idle
 * connection fell from 3–4 % of a core to 0.1 %.
 */
export function patchTimers(): void {
  const requestQueue = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as RequestQueueClass;
  const { prototype } = requestQueue;
  if (Object.hasOwn(prototype, PATCHED)) return;
  const schedule = prototype.scheduleCheckPendingRequests;
  prototype.scheduleCheckPendingRequests = function (this: RequestQueue) {
    if (this.pending.length > 0 || this.throttledUntil > Date.now()) schedule.call(this);
  };
  Object.defineProperty(prototype, PATCHED, { value: true });
}
