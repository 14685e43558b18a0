import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { access, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import kafkajs from 'kafkajs';
import { patchTimers } from '../../common/log/patch-kafkajs-timers.ts';
import { freePort, LOOPBACK } from '../../local/free-port.ts';

const run = promisify(execFile);

const PROJECT = resolve(import.meta.dirname, '../kafka');
const START_TIMEOUT_MS = 60_000;
/** Options that make a short-lived JVM start faster. */
const JVM = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'];
/** A broker's heap in MiB, by default. */
const HEAP_MIB = 384;

/** A real Apache Kafka node, which a test may kill or pause. */
export interface Broker {
  /** `host:port`. */
  readonly brokers: string;
  /** Folder of its data, until it is stopped. */
  readonly folder: string;
  /** Restarts it after `kill`, with the same ports and data, if it does not run; resolves when it answers. */
  start(): Promise<void>;
  /** SIGKILL by default; resolves when it has exited. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** SIGSTOP: it keeps its connections but does not respond. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
  /** Kills it and deletes its data. */
  stop(): Promise<void>;
}

/**
 * The Kafka of a test run: the one named by `KAFKA_BROKERS`, else a new one if Java 17 and Maven are installed. Without
 * them its tests are skipped with a message; with `CI=true` that is a failure.
 */
export async function kafkaForTests(): Promise<{ brokers: string; stop(): Promise<void> } | undefined> {
  const given = process.env.KAFKA_BROKERS;
  if (given) return { brokers: given, stop: async () => undefined };
  const missing = await missingPrerequisite();
  if (missing === undefined) return startKafka();
  const sentence = `Tests over Apache Kafka need KAFKA_BROKERS, or Java 17 and Maven: ${missing}`;
  if (process.env.CI === 'true') throw new Error(sentence);
  console.error(`${sentence} They are skipped.`);
  return undefined;
}

/** Additional configuration of a broker. */
export interface KafkaOptions {
  /** Lines of `server.properties` that override the defaults. `listeners`: its default listeners. */
  settings?(listeners: string): string;
  /** Arguments of the tool that formats its storage, for example to create users. */
  readonly format?: readonly string[];
}

/** Starts a broker on free loopback ports. It is killed when this process exits, however that happens. */
export async function startKafka(options: KafkaOptions = {}): Promise<Broker> {
  return startNode(options, await classArchive());
}

async function startNode({ settings: more = () => '', format = [] }: KafkaOptions, jvm: string): Promise<Broker> {
  const folder = await mkdtemp(join(tmpdir(), 'signpost-kafka-'));
  const [port, controllerPort] = [await freePort(), await freePort()];
  const brokers = `${LOOPBACK}:${port}`;
  const listeners = `PLAINTEXT://${brokers},CONTROLLER://${LOOPBACK}:${controllerPort}`;
  const settings = kafkaSettings({ folder, port, controllerPort, listeners }) + more(listeners);
  const broker = await prepareNode({ brokers, folder, settings, clusterId: newClusterId(), format }, jvm);
  await broker.start().catch(async (error: unknown) => {
    await broker.stop();
    throw error;
  });
  return broker;
}

/** A name for a new cluster, as its nodes are formatted with it. */
export function newClusterId(): string {
  return randomBytes(16).toString('base64url');
}

/** What a node is made of. */
export interface BrokerOptions {
  /** `host:port` where it answers clients in cleartext. */
  readonly brokers: string;
  /** Exists, and becomes the broker's. */
  readonly folder: string;
  /** All of `server.properties`. */
  readonly settings: string;
  readonly clusterId: string;
  /** Arguments of the tool that formats its storage. */
  readonly format?: readonly string[];
  /** Its heap in MiB. */
  readonly heap?: number;
}

/** Formats the storage of a node, which is then ready to be started. It dies with this process. */
export async function prepareBroker(options: BrokerOptions): Promise<Broker> {
  return prepareNode(options, await classArchive());
}

/** `jvm`: another option of Java. */
async function prepareNode(options: BrokerOptions, jvm: string): Promise<Broker> {
  const { brokers, folder, settings, clusterId, format = [], heap = HEAP_MIB } = options;
  const java = [`-Xmx${heap}m`, ...JVM, jvm, '-cp', `${await jars()}/*`];
  const properties = join(folder, 'server.properties');
  await writeFile(properties, settings);
  await run('java', [
    ...java,
    'kafka.tools.StorageTool',
    'format',
    `--cluster-id=${clusterId}`,
    '-c',
    properties,
    ...format,
  ]);

  let server: ChildProcess | undefined;
  const isRunning = () => server !== undefined && server.exitCode === null && server.signalCode === null;
  const kill = async (signal: NodeJS.Signals = 'SIGKILL') => {
    if (!server || !isRunning()) return;
    const gone = once(server, 'exit');
    server.kill(signal);
    await gone;
  };
  return {
    brokers,
    folder,
    async start() {
      if (isRunning()) return;
      server = spawn('java', [...java, 'kafka.Kafka', properties], { stdio: ['ignore', 'pipe', 'pipe'] });
      killWithParent(server);
      const complaints: Buffer[] = [];
      for (const stream of [server.stdout, server.stderr]) {
        stream?.on('data', (chunk: Buffer) => complaints.push(chunk));
      }
      const deadline = Date.now() + START_TIMEOUT_MS;
      while (!(await answers(brokers))) {
        if (!isRunning() || Date.now() > deadline) {
          await kill();
          throw new Error(`Kafka did not start: ${Buffer.concat(complaints)}`);
        }
        await sleep(100);
      }
    },
    kill,
    pause: () => void server?.kill('SIGSTOP'),
    resume: () => void server?.kill('SIGCONT'),
    async stop() {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/**
 * The option that names an archive of the classes of brokers and their tools. With it a broker started with 2 instead
 * of 3.7 s of CPU, its storage was formatted with 0.6 instead of 1. Java writes it when a program ends (JEP 350), so a
 * broker is started and stopped for it, once for each version of the jars; another version of Java ignores it.
 */
async function classArchive(): Promise<string> {
  const archive = `${await jars()}.jsa`;
  if (!(await exists(archive))) {
    const draft = await mkdtemp(join(PROJECT, 'target', 'draft-'));
    const written = join(draft, 'classes.jsa');
    const broker = await startNode({}, `-XX:ArchiveClassesAtExit=${written}`);
    await broker.kill('SIGTERM');
    await broker.stop();
    await rename(written, archive);
    await rm(draft, { recursive: true });
  }
  return `-XX:SharedArchiveFile=${archive}`;
}

/** The folder of the jars, which Maven downloads once per version of the `pom.xml`. */
export async function jars(): Promise<string> {
  const pom = join(PROJECT, 'pom.xml');
  const version = createHash('sha256')
    .update(await readFile(pom))
    .digest('hex')
    .slice(0, 12);
  const target = join(PROJECT, 'target');
  const folder = join(target, `jars-${version}`);
  if (await exists(folder)) return folder;
  await mkdir(target, { recursive: true });
  // Renamed into place at the end: test runs may do this concurrently, and an interrupted one leaves nothing
  // incomplete.
  const temporary = await mkdtemp(join(target, 'draft-'));
  await run('mvn', [
    ...['--quiet', '--batch-mode', '--file', pom, 'dependency:copy-dependencies'],
    ...['-DincludeScope=runtime', `-DoutputDirectory=${temporary}`],
  ]);
  await rename(temporary, folder).catch(async () => {
    await access(folder);
    await rm(temporary, { recursive: true });
  });
  return folder;
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/**
 * A shell reads from a pipe of this process, which closes when this process exits, even by SIGKILL; then it kills the
 * child.
 */
export function killWithParent(child: ChildProcess): void {
  const watcher = spawn('sh', ['-c', 'read -r _; kill -KILL "$0"', String(child.pid)], {
    // A separate process group, so that Ctrl-C does not kill the watcher first.
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  watcher.unref();
  child.once('exit', () => watcher.kill('SIGKILL'));
}

/** `server.properties` of a node that is broker and controller and alone; later lines of the same name win. */
export function kafkaSettings({
  folder,
  port,
  controllerPort,
  listeners,
}: {
  folder: string;
  port: number;
  controllerPort: number;
  listeners: string;
}): string {
  return `
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@${LOOPBACK}:${controllerPort}
listeners=${listeners}
advertised.listeners=PLAINTEXT://${LOOPBACK}:${port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=${join(folder, 'data')}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.cleaner.backoff.ms=500
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
`;
}

async function missingPrerequisite(): Promise<string | undefined> {
  const version = await run('java', ['-version'])
    .then(({ stderr }) => /version "(\d+)/.exec(stderr)?.[1])
    .catch(() => '0');
  if (Number(version) < 17) return version === '0' ? 'Java is missing.' : `Java is ${version}.`;
  return run('mvn', ['-v']).then(
    () => undefined,
    () => 'Maven is missing.',
  );
}

/** Whether the broker answers a client; an open port may belong to a broker that is still starting. */
async function answers(brokers: string): Promise<boolean> {
  patchTimers();
  const admin = new kafkajs.Kafka({
    brokers: [brokers],
    connectionTimeout: 1_000,
    requestTimeout: 1_000,
    retry: { retries: 0 },
    logLevel: kafkajs.logLevel.NOTHING,
  }).admin();
  try {
    await admin.connect();
    return (await admin.describeCluster()).brokers.length > 0;
  } catch {
    // Not ready yet.
    return false;
  } finally {
    await admin.disconnect();
  }
}
