import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { type Broker, kafkaSettings, newClusterId, prepareBroker } from './kafka.ts';
import { openTcpProxy, type TcpProxy } from './open-tcp-proxy.ts';

/** MiB of each broker's heap: three share a machine with everything else. */
const HEAP_MIB = 256;

/** A broker of a cluster, and what stands between it and its clients. */
export interface ClusterBroker extends Broker {
  readonly proxy: TcpProxy;
}

/** A real Apache Kafka of three nodes, each broker and controller, with three copies of everything. */
export interface KafkaCluster extends AsyncDisposable {
  /** `host:port,…` of the proxies: for the clients under test. */
  readonly clients: string;
  /** `host:port,…` without proxies: for the test itself. */
  readonly direct: string;
  readonly brokers: readonly ClusterBroker[];
}

/**
 * Starts it on free loopback ports; it dies with this process. `disks`: folders for the data of the brokers, one for
 * each; by default all of them are in a temporary folder.
 */
export async function startKafkaCluster(disks: readonly string[] = []): Promise<KafkaCluster> {
  await using starting = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'signpost-cluster-'));
  starting.defer(() => rm(folder, { recursive: true, force: true }));
  const clusterId = newClusterId();
  const nodes = await Promise.all(
    [1, 2, 3].map(async (id) => ({
      id,
      port: await freePort(),
      controllerPort: await freePort(),
      clientPort: await freePort(),
      folder: await mkdtemp(join(disks[id - 1] ?? folder, `broker-${id}-`)),
    })),
  );
  const voters = nodes.map(({ id, controllerPort }) => `${id}@${LOOPBACK}:${controllerPort}`).join(',');
  const brokers = await Promise.all(
    nodes.map(async ({ id, port, controllerPort, clientPort, folder }) => {
      const proxy = await openTcpProxy(`tcp://${LOOPBACK}:${clientPort}`);
      starting.defer(async () => proxy.close());
      const brokers = `${LOOPBACK}:${port}`;
      const listeners = `PLAINTEXT://${brokers},CONTROLLER://${LOOPBACK}:${controllerPort}`;
      const settings = `${kafkaSettings({ folder, port, controllerPort, listeners })}
node.id=${id}
controller.quorum.voters=${voters}
listeners=${listeners},CLIENTS://${LOOPBACK}:${clientPort}
advertised.listeners=PLAINTEXT://${brokers},CLIENTS://${new URL(proxy.url).host}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,CLIENTS:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
share.coordinator.state.topic.replication.factor=3
share.coordinator.state.topic.min.isr=2
default.replication.factor=3
`;
      return { ...(await prepareBroker({ brokers, folder, settings, clusterId, heap: HEAP_MIB })), proxy };
    }),
  );
  for (const broker of brokers) starting.defer(() => broker.kill());
  // None of them answers before two run.
  await Promise.all(brokers.map((broker) => broker.start()));
  const running = starting.move();
  return {
    clients: brokers.map(({ proxy }) => new URL(proxy.url).host).join(','),
    direct: brokers.map(({ brokers }) => brokers).join(','),
    brokers,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
