import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePort, LOOPBACK } from '../../local/free-port.ts';

const run = promisify(execFile);

const PROJECT = resolve(import.meta.dirname, '../kafka');
const JARS = join(PROJECT, 'target/lib');
const READY_WITHIN_MS = 60_000;

/** A real Apache Kafka of one node (KRaft), which a test may treat badly. */
export interface Broker {
  /** `host:port`. */
  readonly brokers: string;
  /** Starts it again after `kill` or `stop`, with the same ports and data. */
  start(): Promise<void>;
  /** SIGKILL. */
  kill(): Promise<void>;
  pause(): void;
  resume(): void;
  /** Stops it for good and deletes its data. */
  stop(): Promise<void>;
}

/**
 * The Kafka of a test run: the one that `KAFKA_BROKERS` names, else one of our own where Java 17 and Maven are there.
 * Without them its tests are skipped and this says so; with `CI=true` that is a failure.
 */
export async function kafkaForTests(): Promise<{ brokers: string; stop(): Promise<void> } | undefined> {
  const given = process.env.KAFKA_BROKERS;
  if (given) return { brokers: given, stop: async () => undefined };
  const lacking = await whatIsLacking();
  if (lacking === undefined) return startKafka();
  const sentence = `Tests over Apache Kafka need KAFKA_BROKERS, or Java 17 and Maven: ${lacking}`;
  if (process.env.CI === 'true') throw new Error(sentence);
  console.error(`${sentence} They are skipped.`);
  return undefined;
}

/** Starts a broker of its own on free loopback ports. */
export async function startKafka(): Promise<Broker> {
  await run('mvn', [
    ...['-q', '-B', '-f', join(PROJECT, 'pom.xml'), 'dependency:copy-dependencies'],
    ...['-DincludeScope=runtime', '-DoutputDirectory=target/lib'],
  ]);
  const folder = await mkdtemp(join(tmpdir(), 'signpost-kafka-'));
  const [port, controllerPort] = [await freePort(), await freePort()];
  const properties = join(folder, 'server.properties');
  await writeFile(properties, settings({ folder, port, controllerPort }));
  await java(['kafka.tools.StorageTool', 'format', '-t', randomBytes(16).toString('base64url'), '-c', properties]);

  let server: ChildProcess;
  const kill = async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const gone = once(server, 'exit');
    server.kill('SIGKILL');
    await gone;
  };
  // Should the run end without stopping it, it does not outlive the run.
  process.once('exit', () => server?.kill('SIGKILL'));
  const start = async () => {
    server = spawn('java', ['-Xmx512m', '-cp', `${JARS}/*`, 'kafka.Kafka', properties], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const complaints: Buffer[] = [];
    server.stderr?.on('data', (chunk: Buffer) => complaints.push(chunk));
    const deadline = Date.now() + READY_WITHIN_MS;
    while (!(await accepts(port))) {
      if (server.exitCode !== null || Date.now() > deadline) {
        await kill();
        throw new Error(`Kafka did not start: ${Buffer.concat(complaints)}`);
      }
      await sleep(100);
    }
  };
  await start();
  return {
    brokers: `${LOOPBACK}:${port}`,
    start,
    kill,
    pause: () => void server.kill('SIGSTOP'),
    resume: () => void server.kill('SIGCONT'),
    async stop() {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function settings({ folder, port, controllerPort }: { folder: string; port: number; controllerPort: number }): string {
  return `
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@${LOOPBACK}:${controllerPort}
listeners=PLAINTEXT://${LOOPBACK}:${port},CONTROLLER://${LOOPBACK}:${controllerPort}
advertised.listeners=PLAINTEXT://${LOOPBACK}:${port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=${join(folder, 'data')}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
`;
}

async function whatIsLacking(): Promise<string | undefined> {
  const version = await run('java', ['-version'])
    .then(({ stderr }) => /version "(\d+)/.exec(stderr)?.[1])
    .catch(() => '0');
  if (Number(version) < 17) return version === '0' ? 'there is no Java.' : `Java is ${version}.`;
  return run('mvn', ['-v']).then(
    () => undefined,
    () => 'there is no Maven.',
  );
}

async function java(command: readonly string[]): Promise<void> {
  await run('java', ['-cp', `${JARS}/*`, ...command]);
}

/** Whether somebody accepts connections. */
function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, LOOPBACK);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
