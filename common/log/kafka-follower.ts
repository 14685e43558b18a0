import { randomUUID } from 'node:crypto';
import type { Admin, Kafka } from 'kafkajs';
import { subscribe } from './kafka-reader.ts';
import type { FollowOptions, Subscription } from './log.ts';

/**
 * A reader without a group: see `Log.follow`. kafkajs reads only as a member of a group, so every follower creates one,
 * never commits, and seeks to its positions. Brokers delete a group that has neither members nor offsets. Its name
 * starts with `followers`.
 */
export function followTopic(
  kafka: Kafka,
  admin: () => Promise<Admin>,
  followers: string,
  options: FollowOptions,
): Subscription {
  const { topic } = options;
  const positions = new Map(options.from);
  return subscribe(kafka, {
    ...options,
    // A new one each time: a crashed consumer may still count as a member of the old one.
    group: () => `${followers}.${randomUUID()}`,
    async begin({ consumer }) {
      // If a position no longer exists (records were deleted, the topic was recreated), it starts at the oldest record.
      for (const { partition, low, high } of await (await admin()).fetchTopicOffsets(topic)) {
        const position = positions.get(partition);
        if (position !== undefined && (position < BigInt(low) || position > BigInt(high))) positions.delete(partition);
      }
      return {
        joined() {
          for (const [partition, offset] of positions) consumer.seek({ topic, partition, offset: String(offset) });
        },
        handled({ batch }, next) {
          positions.set(batch.partition, next);
        },
      };
    },
  });
}
