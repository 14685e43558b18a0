import type { EachBatchPayload, Kafka } from 'kafkajs';
import type { Logger } from 'pino';
import { pause } from '../runtime/pause.ts';
import { subscribe } from './kafka-reader.ts';
import { kafkaTopicId } from './kafka-topic-id.ts';
import type { Cluster, CommittedOffset } from './kafkajs-cluster.ts';
import type { ConsumeOptions, Subscription } from './log.ts';

/** How often a group checks whether its topic was replaced, in ms. */
const CHECK_MS = 5_000;

/**
 * Joins a consumer group: see `Log.consume`. If the topic was deleted and created again, its offsets in the former one
 * mean nothing, but are valid as soon as the new one has as many records, which would then be skipped. So each commit
 * contains the topic's id as its metadata, and a position in another topic is replaced by the beginning.
 *
 * A consumer queries the id once, before it reads anything. So an id in a commit may be that of an earlier topic than
 * its offset, whereupon records are read again, but not that of a later one.
 */
export function consumeTopic(kafka: Kafka, logger: Logger, options: ConsumeOptions): Subscription {
  const { topic, group } = options;
  /** The topic of the current consumer; the former one has ended by then. */
  let topicId = '';
  return subscribe(kafka, {
    ...options,
    handle: (records, from) => options.handle(records, from, topicId),
    group: () => group,
    async begin({ consumer, cluster, ended, replace }) {
      const currentId = () => kafkaTopicId(cluster, topic);
      const id = await currentId();
      topicId = id;
      const replaced = () => {
        if (ended.aborted) return;
        logger.warn({ topic, group }, 'a topic was replaced; it is read from its beginning');
        replace();
      };
      const watch = async () => {
        for (let current = id; current === id; ) {
          await pause(CHECK_MS, ended);
          if (ended.aborted) return;
          // If the query fails, or the topic is missing, it is checked again later.
          current = await currentId().catch(() => id);
        }
        replaced();
      };
      void watch();
      // Unlike `consumer.commitOffsets`, this also commits the current batch while the consumer is stopping.
      const commit = ({ batch: { partition }, commitOffsetsIfNecessary }: EachBatchPayload, next: bigint) => {
        const offset = { partition, offset: String(next), metadata: id };
        return commitOffsetsIfNecessary({ topics: [{ topic, partitions: [offset] }] });
      };
      return {
        async joined(partitions) {
          const committed = await committedOffsets(cluster, group, topic, partitions);
          for (const { partition, offset } of committed) {
            // kafkajs may have read a commit just before Kafka deleted it together with the former topic.
            if (Number(offset) < 0) consumer.seek({ topic, partition, offset: '0' });
          }
          // Without metadata it was committed by an operator or an older version.
          const former = committed.filter(({ metadata }) => metadata && metadata !== id);
          if (former.length === 0) return;
          // Otherwise the commits are those of a member that has noticed it earlier.
          if ((await currentId()) === id) {
            const beginnings = former.map(({ partition }) => ({ topic, partition, offset: '0', metadata: id }));
            await consumer.commitOffsets(beginnings);
          }
          replaced();
        },
        handled: commit,
        async readAgain(payload, from) {
          // kafkajs may forget the seek, but then it continues at the commit.
          await commit(payload, from);
          consumer.seek({ topic, partition: payload.batch.partition, offset: String(from) });
        },
      };
    },
  });
}

async function committedOffsets(
  cluster: Cluster,
  groupId: string,
  topic: string,
  partitions: readonly number[],
): Promise<readonly CommittedOffset[]> {
  if (partitions.length === 0) return [];
  const coordinator = await cluster.findGroupCoordinator({ groupId });
  const topics = [{ topic, partitions: partitions.map((partition) => ({ partition })) }];
  const { responses } = await coordinator.offsetFetch({ groupId, topics });
  return responses.flatMap((response) => response.partitions);
}
