import type { ConsumeOptions } from '../../../common/log/log.ts';

/**
 * After a failure, `handle` gets half as many records of that partition at once, and after each success twice as many
 * again, up to `max`. Otherwise a full poll that a slow Postgres does not record in time would be repeated for ever.
 */
export function fewerAfterFailures(max: number, handle: ConsumeOptions['handle']): ConsumeOptions['handle'] {
  const atOnce = new Map<number, number>();
  return async (records, from, topicId) => {
    let next = from;
    for (let at = 0; at < records.length; ) {
      const partition = records[at]?.partition ?? 0;
      const count = atOnce.get(partition) ?? max;
      const part = records.slice(at, at + count);
      try {
        await handle(part, next, topicId);
      } catch (error) {
        atOnce.set(partition, Math.ceil(part.length / 2));
        throw error;
      }
      atOnce.set(partition, Math.min(count * 2, max));
      next = (part.at(-1)?.offset ?? next) + 1n;
      at += part.length;
    }
  };
}
