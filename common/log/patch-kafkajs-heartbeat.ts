import { createRequire } from 'node:module';

interface ConsumerGroup {
  /** When the last heartbeat was sent, by `Date.now()`. */
  lastRequest: number;
}

interface ConsumerGroupClass {
  prototype: { heartbeat(this: ConsumerGroup, options: { interval: number }): Promise<void> };
}

const PATCHED = Symbol.for('signpost.kafkajs.heartbeat');

/**
 * kafkajs 2.2.4 sends a heartbeat once the wall clock is an interval later than at the last one. If the clock is set
 * back by an hour, members send none for an hour: brokers remove them after each ten seconds without a commit, and what
 * they read is read by others too. This patch sends the next one at once.
 */
export function patchHeartbeat(): void {
  const { prototype } = createRequire(import.meta.url)('kafkajs/src/consumer/consumerGroup') as ConsumerGroupClass;
  if (Object.hasOwn(prototype, PATCHED)) return;
  const heartbeat = prototype.heartbeat;
  prototype.heartbeat = function (this: ConsumerGroup, options) {
    if (this.lastRequest > Date.now()) this.lastRequest = 0;
    return heartbeat.call(this, options);
  };
  Object.defineProperty(prototype, PATCHED, { value: true });
}
