import type { Kafka } from 'kafkajs';

/** The part of a kafkajs cluster that is used here. */
export interface Cluster {
  readonly brokerPool: {
    /** Refreshes the list of brokers if it is unknown or five minutes old. */
    refreshMetadataIfNecessary(topics: readonly string[]): Promise<void>;
    findConnectedBroker(): Promise<Broker>;
  };
  findBroker(of: { nodeId: string }): Promise<Broker>;
  /** `coordinatorType`: by default that of consumer groups. */
  findGroupCoordinator(of: { groupId: string; coordinatorType?: number }): Promise<Broker>;
}

interface TopicPartitions {
  readonly topic: string;
  readonly partitions: readonly { readonly partition: number }[];
}

export interface CommittedOffset {
  readonly partition: number;
  readonly offset: string;
  readonly metadata: string | null;
}

/** The part of a kafkajs broker that is used here. */
export interface Broker {
  /** The offsets that a group has committed: -1 if none, -2 if kafkajs committed the beginning. */
  offsetFetch(of: { groupId: string; topics: readonly TopicPartitions[] }): Promise<{
    readonly responses: readonly { readonly partitions: readonly CommittedOffset[] }[];
  }>;
  initProducerId(of: { transactionalId: string | undefined; transactionTimeout: number }): Promise<unknown>;
  readonly connectionPool: {
    /** Sends a custom request; resolves with the result of `parse`. */
    send<Answer>(request: {
      request: {
        apiKey: number;
        apiVersion: number;
        apiName: string;
        encode(): Promise<{ buf: Buffer; buffer: Buffer }>;
      };
      response: { decode(payload: Buffer): Promise<Buffer>; parse(payload: Buffer): Promise<Answer> };
    }): Promise<Answer>;
  };
}

/** The same client, whose producers, consumers and admins use their clusters wrapped by `wrap`. */
export function withClusters(kafka: Kafka, wrap: (cluster: Cluster) => object): Kafka {
  const key = Object.getOwnPropertySymbols(kafka).find(
    ({ description }) => description === 'private:Kafka:createCluster',
  );
  if (!key) throw new Error('this version of kafkajs is not supported');
  const createCluster = (kafka as unknown as Record<symbol, (options: unknown) => Cluster>)[key];
  return Object.create(kafka, {
    [key]: {
      value: (options: unknown) => {
        const cluster = createCluster?.(options);
        return cluster && wrap(cluster);
      },
    },
  });
}

/** What `create` creates with kafkajs, such as a consumer, and the cluster that kafkajs creates for it. */
export function createWithCluster<Client>(
  kafka: Kafka,
  create: (kafka: Kafka) => Client,
): { readonly client: Client; readonly cluster: Cluster } {
  let cluster: Cluster | undefined;
  const client = create(
    withClusters(kafka, (created) => {
      cluster = created;
      return created;
    }),
  );
  if (!cluster) throw new Error('this version of kafkajs is not supported');
  return { client, cluster };
}
