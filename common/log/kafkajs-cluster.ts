import type { Kafka } from 'kafkajs';

/** The part of a kafkajs cluster that is used here. */
export interface Cluster {
  readonly brokerPool: {
    /** Learns which brokers there are, where that is not known or five minutes old. */
    refreshMetadataIfNecessary(topics: readonly string[]): Promise<void>;
    findConnectedBroker(): Promise<Broker>;
  };
  findBroker(of: { nodeId: string }): Promise<Broker>;
  findGroupCoordinator(of: { groupId: string; coordinatorType: number }): Promise<Broker>;
}

/** The part of a kafkajs broker that is used here. */
export interface Broker {
  initProducerId(of: { transactionalId: string | undefined; transactionTimeout: number }): Promise<unknown>;
  readonly connectionPool: {
    /** Sends a request of the caller's own making; gives what `parse` made of the answer. */
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

/** The same client, whose producers, consumers and admins get their clusters through `through`. */
export function withClusters(kafka: Kafka, through: (cluster: Cluster) => object): Kafka {
  const key = Object.getOwnPropertySymbols(kafka).find(
    ({ description }) => description === 'private:Kafka:createCluster',
  );
  if (!key) throw new Error('kafkajs is not the one that this was written for');
  const createCluster = (kafka as unknown as Record<symbol, (options: unknown) => Cluster>)[key];
  return Object.create(kafka, {
    [key]: {
      value: (options: unknown) => {
        const cluster = createCluster?.(options);
        return cluster && through(cluster);
      },
    },
  });
}
