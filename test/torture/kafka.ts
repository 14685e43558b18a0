import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type ClusterBroker, type KafkaCluster, startKafkaCluster } from '../harness/kafka-cluster.ts';
import { fill } from './disk.ts';
import { oneAtATime, untilReverted } from './one-at-a-time.ts';
import type { PowerCutDisk } from './power-cut.ts';

const run = promisify(execFile);

/** A broker into which faults are injected. */
export interface TorturedBroker extends ClusterBroker {
  /** Cuts the power of its machine until `start`. Requires a disk of its own. */
  cutPower(): Promise<void>;
  /** Fills its disk until the returned function is called, which also restarts it. Requires a disk of its own. */
  fillDisk(): Promise<() => Promise<void>>;
}

export interface TorturedKafka extends KafkaCluster {
  readonly brokers: readonly TorturedBroker[];
}

/** Starts three brokers. `disks`: one for each broker, or empty. */
export async function startTorturedKafka(disks: readonly PowerCutDisk[]): Promise<TorturedKafka> {
  const cluster = await startKafkaCluster(disks.map(({ path }) => path));
  // Kafka doesn't sync what it writes when it formats its disk, and can't start without it.
  await Promise.all(disks.map(({ path }) => run('sync', ['--file-system', path])));
  const brokers = cluster.brokers.map((broker, index) => {
    // A broker must not be started while its disk is unmounted.
    const withDisk = oneAtATime();
    return {
      ...broker,
      start: () => withDisk(() => broker.start()),
      cutPower: () =>
        withDisk(async () => {
          await broker.kill();
          await disks[index]?.cut();
        }),
      async fillDisk() {
        const disk = disks[index];
        if (!disk) throw new Error('The broker has no disk of its own.');
        return untilReverted(withDisk, async () => {
          const empty = await fill(disk);
          return async () => {
            await empty();
            await broker.kill();
            await broker.start();
          };
        });
      },
    };
  });
  return { ...cluster, brokers };
}
