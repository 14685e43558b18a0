import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { CoreClients } from '../../cli/clients.ts';
import { connectCore } from '../../cli/core.ts';
import { EXIT_CODES } from '../../cli/exit-codes.ts';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { openTcpProxy, type TcpProxy } from '../harness/open-tcp-proxy.ts';
import { openSmallDisk, SMALL_DISK_MIB } from './disk.ts';
import { type Gateway, startGateway } from './gateway-machine.ts';
import { startTorturedKafka, type TorturedKafka } from './kafka.ts';
import { startTorturedPostgres, type TorturedPostgres } from './postgres.ts';
import { PowerCutDisk } from './power-cut.ts';
import { type Accident, Supervised } from './supervised.ts';

const PROJECT = resolve(import.meta.dirname, '../..');
const COUNT = 2;
const WORKERS = 2;
/** Enough for the data of Postgres or a broker over some hours, in MiB; the file is sparse. */
const LARGE_DISK_MIB = 8_192;
/** How long starts of cores may still fail after Postgres has become available again, in ms. */
const AFTER_POSTGRES_MS = 15_000;

/** The output of a core that can't start, and that of lmdb about a transaction that it has undone. */
const KNOWN_OUTPUT =
  /^(Postgres (does not answer|is unavailable):|Invalid (zero size key|null txn id)$|mdb_page_alloc error$|put failed bad_sub)/;

/** A complete Signpost of many processes, with all its dependencies, on this machine. */
export interface Platform extends AsyncDisposable {
  readonly gateways: readonly Gateway[];
  /** Cores with only the role `rpc`; `backgroundCores` have the other roles. */
  readonly cores: readonly Supervised[];
  readonly backgroundCores: readonly Supervised[];
  readonly postgres: TorturedPostgres;
  readonly kafka: TorturedKafka;
  /** Proxies between gateways and each core, between cores and Postgres, and between gateways and Postgres. */
  readonly proxies: { readonly cores: readonly TcpProxy[]; readonly postgres: readonly TcpProxy[] };
  readonly accidents: readonly Accident[];
  /** Marks Postgres as unreliable until the returned function is called. */
  disturbPostgres(): () => void;
  /** A client for a running core, as the command line uses it. */
  core(account?: string): Promise<CoreClients>;
  /**
   * Runs a command of the command line and returns its JSON output. `gateway`: the gateway on whose machine it runs.
   */
  operator(args: readonly string[], gateway?: Gateway): Promise<Record<string, unknown>>;
  /** Lines of logs that are not JSON, except the known output of programs that can't start. */
  unstructured(): Promise<string[]>;
}

/**
 * Starts everything and resolves when it is ready. `powerCuts`: uses disks whose power can be cut; `process.execPath`
 * is then replaced until the platform is disposed of.
 */
export async function startPlatform({ powerCuts }: { powerCuts: boolean }): Promise<Platform> {
  await using starting = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'signpost-torture-'));
  starting.defer(() => rm(folder, { recursive: true, force: true }));
  const disk = async (sizeInMiB: number) => {
    const made = await PowerCutDisk.create(sizeInMiB);
    starting.defer(() => made.close());
    return made;
  };
  const gatewayDisks = [];
  for (let index = 0; index < COUNT; index++) {
    if (powerCuts) gatewayDisks.push(await disk(SMALL_DISK_MIB));
    else {
      const small = await openSmallDisk(join(folder, `gateway-${index}`));
      if (small) starting.defer(() => small.close());
      gatewayDisks.push(small);
    }
  }
  const { execPath } = process;
  const [powerCutDisk] = gatewayDisks;
  if (powerCutDisk instanceof PowerCutDisk) process.execPath = powerCutDisk.node;
  starting.defer(() => {
    process.execPath = execPath;
  });
  const large = () => disk(LARGE_DISK_MIB);
  const kafka = starting.use(await startTorturedKafka(powerCuts ? [await large(), await large(), await large()] : []));
  const postgresDisk = powerCuts ? await large() : undefined;
  const postgres = await startTorturedPostgres(join(postgresDisk?.path ?? folder, 'postgres'), postgresDisk);
  starting.defer(() => postgres.stop());
  const proxy = async (target: string) => {
    const opened = await openTcpProxy(target);
    starting.defer(async () => opened.close());
    return opened;
  };
  const databases = { cores: await proxy(postgres.url), gateways: await proxy(postgres.gatewayUrl) };

  const accidents: Accident[] = [];
  let disturbances = 0;
  let disturbedUntil = 0;
  const logs: string[] = [];
  const start = (name: string, program: string, env: NodeJS.ProcessEnv) => {
    const log = join(folder, `${name.replaceAll(' ', '-')}.log`);
    logs.push(log);
    const supervised = new Supervised({
      name,
      program,
      env,
      log,
      accident: (accident) => void accidents.push(accident),
      mayFailToStart: () => disturbances > 0 || Date.now() < disturbedUntil,
    });
    starting.defer(() => supervised.stop());
    return supervised;
  };

  const serviceToken = randomBytes(32).toString('hex');
  const gatewayPorts = [await freePort(), await freePort()];
  const corePorts = [await freePort(), await freePort()];
  const shared = {
    PATH: process.env.PATH,
    KAFKA_BROKERS: kafka.clients,
    LISTEN_HOST: LOOPBACK,
    PUBLIC_URL: `http://${LOOPBACK}:${gatewayPorts[0]}`,
  };
  const coreEnv = {
    ...shared,
    DATABASE_URL: databases.cores.url,
    DATA_DIR: join(folder, 'cores'),
    SECRET_KEY: randomBytes(32).toString('base64'),
    SERVICE_TOKEN: serviceToken,
    WEBHOOKS_ALLOW_PRIVATE: 'true',
  };
  const coreProxies: TcpProxy[] = [];
  const cores: Supervised[] = [];
  for (const [index, port] of corePorts.entries()) {
    const grpcPort = await freePort();
    coreProxies.push(await proxy(`tcp://${LOOPBACK}:${grpcPort}`));
    const env = { ...coreEnv, ROLES: 'rpc', CORE_PORT: String(port), GRPC_PORT: String(grpcPort) };
    cores.push(start(`core ${index}`, 'src/main.ts', env));
    // The first core runs the migrations.
    await cores[0]?.ready();
  }
  const backgroundCores = Array.from({ length: COUNT }, (_, index) =>
    start(`background core ${index}`, 'src/main.ts', { ...coreEnv, ROLES: 'relay,recorder,worker' }),
  );
  const gateways: Gateway[] = [];
  for (const [index, port] of gatewayPorts.entries()) {
    const env = {
      ...shared,
      PORT: String(port),
      GATEWAY_WORKERS: String(WORKERS),
      // All clients have the same address.
      CONNECTIONS_PER_ADDRESS: '100000',
      FAILED_AUTHENTICATIONS_PER_MINUTE: '100000',
      UNKNOWN_CODES_PER_MINUTE: '100000',
      SPOOL_RETENTION_HOURS: '1',
      DATABASE_URL: databases.gateways.url,
      CORE_ADDRESS: coreProxies.map(({ url }) => new URL(url).host).join(','),
    };
    const url = `http://${LOOPBACK}:${port}`;
    const options = { index, url, disk: gatewayDisks[index], fallbackFolder: folder };
    gateways.push(
      startGateway({ ...options, start: (name, program, own) => start(name, program, { ...env, ...own }) }),
    );
  }
  await Promise.all(
    [...cores, ...backgroundCores, ...gateways.map((each) => each.process)].map((each) => each.ready()),
  );

  const operatorEnv = { ...shared, SERVICE_TOKEN: serviceToken };
  const runningCorePort = async () => {
    for (const [index, core] of cores.entries()) if (core.pid !== undefined) return String(corePorts[index]);
    return String(corePorts[0]);
  };
  const running = starting.move();
  return {
    gateways,
    cores,
    backgroundCores,
    postgres,
    kafka,
    proxies: { cores: coreProxies, postgres: [databases.cores, databases.gateways] },
    accidents,
    disturbPostgres() {
      disturbances++;
      return () => {
        disturbances--;
        disturbedUntil = Date.now() + AFTER_POSTGRES_MS;
      };
    },
    core: async (account) => connectCore({ ...operatorEnv, CORE_PORT: await runningCorePort() }, account),
    async operator(args, gateway) {
      const env = {
        ...operatorEnv,
        CORE_PORT: await runningCorePort(),
        ...(gateway && { DATA_DIR: gateway.folder, DATABASE_URL: databases.gateways.url }),
      };
      const command = [join(PROJECT, 'cli/main.ts'), ...args, '--json'];
      const { stdout } = await promisify(execFile)(process.execPath, command, { env, timeout: 120_000 }).catch(
        (error) => {
          // An audit that finds differences prints them.
          if (error.code !== EXIT_CODES.unfulfilled) throw error;
          return error as { stdout: string };
        },
      );
      return JSON.parse(stdout) as Record<string, unknown>;
    },
    async unstructured() {
      const lines = await Promise.all(
        logs.map(async (log) =>
          (await readFile(log, 'utf8'))
            .split('\n')
            .filter((line) => line !== '' && !line.startsWith('{') && !KNOWN_OUTPUT.test(line))
            .map((line) => `${log.slice(folder.length + 1)}: ${line}`),
        ),
      );
      return lines.flat();
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}
