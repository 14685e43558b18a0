import { createRequire } from 'node:module';

/** The part of kafkajs's request queue that is mended here. */
interface RequestQueue {
  readonly pending: readonly unknown[];
  readonly throttledUntil: number;
}

interface RequestQueueClass {
  prototype: { scheduleCheckPendingRequests(this: RequestQueue): void };
}

const MENDED = Symbol.for('signpost.kafkajs.timers');

/**
 * kafkajs 2.2.4 arms its queue's timer again for ever, with a negative delay where nothing waits: about 890 wake-ups a
 * second and connection, and from Node 24 on a TimeoutNegativeWarning (kafkajs #1704, #1751; unmerged). The timer is
 * needed only while requests wait or the broker throttles, so it is armed only then. Idle use of a core fell from 3–4 %
 * to 0.1 % a connection.
 */
export function mendTimers(): void {
  const requestQueue = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as RequestQueueClass;
  const { prototype } = requestQueue;
  if (Object.hasOwn(prototype, MENDED)) return;
  const schedule = prototype.scheduleCheckPendingRequests;
  prototype.scheduleCheckPendingRequests = function (this: RequestQueue) {
    if (this.pending.length > 0 || this.throttledUntil > Date.now()) schedule.call(this);
  };
  Object.defineProperty(prototype, MENDED, { value: true });
}
