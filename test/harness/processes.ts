import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import { type Child, type ChildOptions, startChild } from '../../local/child.ts';
import { createAccount, type NewAccount } from '../../local/create-account.ts';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { afterFile } from './after-file.ts';
import { freshDatabase } from './database.ts';

export interface SignpostOptions {
  /** Default: a new database. */
  readonly databaseUrl?: string;
  /** The same database for gateways. Default: with the gateway role, if the server has it. */
  readonly gatewayDatabaseUrl?: string;
  /** Default: none, so the log is in Postgres. */
  readonly kafkaBrokers?: string;
  /**
   * Number of gateways; default 1, and 0 for tests of the core alone. Gateway n calls core n, or the last one, unless
   * `coresCalled` is set.
   */
  readonly gateways?: number;
  /** Number of cores; default 1. */
  readonly cores?: number;
  /** Every gateway calls this many cores, the first ones. */
  readonly coresCalled?: number;
  /** `ROLES` of each core; default: all. */
  readonly roles?: readonly string[];
  /** Variables for all processes, overriding those of the harness. */
  readonly env?: Readonly<Record<string, string>>;
  /** Variables for gateways, overriding `env`. */
  readonly gatewayEnv?: Readonly<Record<string, string>>;
}

/** A process of Signpost that a test may kill and restart at the same address. */
export interface Process {
  readonly pid: number;
  /** Resolves when the current process has exited, with how it ended. */
  readonly ended: Promise<string>;
  /** Its address: REST and scans of a gateway, Connect of a core. */
  readonly url: string;
  /** Default: SIGKILL. Resolves when it has exited. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Restarts it, killing it first if it still runs; resolves when it is ready. */
  restart(): Promise<void>;
  /** Its complete output. */
  log(): Promise<string>;
}

/** A complete Signpost of real processes, stopped at the latest after the calling file's tests. */
export interface Signpost {
  /** Address of the first gateway, also if there is none, and start of scan URLs. */
  readonly url: string;
  /** Ports of the first core. */
  readonly corePort: number;
  readonly grpcPort: number;
  /** `CORE_ADDRESS` of the first gateway. */
  readonly coreAddress: string;
  readonly serviceToken: string;
  readonly databaseUrl: string;
  /** Contains a folder per gateway and the logs. */
  readonly dataDir: string;
  readonly cores: readonly Process[];
  readonly gateways: readonly Process[];
  createAccount(account?: Partial<Parameters<typeof createAccount>[1]>): Promise<NewAccount>;
  stop(): Promise<void>;
}

/** Starts the real programs on free ports; resolves when all are ready. */
export async function startSignpost(options: SignpostOptions = {}): Promise<Signpost> {
  const databaseUrl = options.databaseUrl ?? (await freshDatabase()).url;
  const dataDir = await mkdtemp(join(tmpdir(), 'signpost-processes-'));
  const running: Process[] = [];
  const stop = async () => {
    for (const process of running.splice(0).reverse()) {
      // A test that failed may have left it suspended, and SIGTERM would wait forever.
      void process.kill('SIGCONT');
      await process.kill('SIGTERM');
    }
    await rm(dataDir, { recursive: true, force: true });
  };
  afterFile(stop);

  const serviceToken = randomBytes(32).toString('base64url');
  const called = (gateway: number) => {
    const ports =
      options.coresCalled === undefined ? [gateway] : Array.from({ length: options.coresCalled }, (_, n) => n);
    return ports.map((core) => `${LOOPBACK}:${grpcPorts[core] ?? grpcPorts.at(-1)}`).join(',');
  };
  const gatewayPorts = await ports(options.gateways ?? 1);
  const corePorts = await ports(options.cores ?? 1);
  const grpcPorts = await ports(options.cores ?? 1);
  const port = gatewayPorts[0] ?? (await freePort());
  const [corePort, grpcPort] = [at(corePorts, 0), at(grpcPorts, 0)];
  const url = `http://${LOOPBACK}:${port}`;
  const shared = {
    PATH: process.env.PATH,
    KAFKA_BROKERS: options.kafkaBrokers,
    LISTEN_HOST: LOOPBACK,
    LOG_LEVEL: 'info',
    PUBLIC_URL: url,
  };
  const secretKey = randomBytes(32).toString('base64');

  for (const [index, each] of corePorts.entries()) {
    const env = {
      ...shared,
      CORE_PORT: String(each),
      GRPC_PORT: String(grpcPorts[index]),
      DATA_DIR: dataDir,
      DATABASE_URL: databaseUrl,
      SERVICE_TOKEN: serviceToken,
      SECRET_KEY: secretKey,
      ROLES: options.roles?.[index],
      ...options.env,
    };
    const log = join(dataDir, `core-${index}.log`);
    running.push(await startProcess(each, { name: 'core', program: 'src/main.ts', env, log }));
  }
  const cores = running.slice();
  for (const [index, each] of gatewayPorts.entries()) {
    const folder = join(dataDir, `gateway-${index}`);
    await mkdir(folder);
    const env = {
      ...shared,
      PORT: String(each),
      GATEWAY_WORKERS: '1',
      // All clients of a suite share one address.
      CONNECTIONS_PER_ADDRESS: '100000',
      FAILED_AUTHENTICATIONS_PER_MINUTE: '100000',
      UNKNOWN_CODES_PER_MINUTE: '100000',
      DATA_DIR: folder,
      DATABASE_URL: options.gatewayDatabaseUrl ?? asGateway(databaseUrl),
      CORE_ADDRESS: called(index),
      ...options.env,
      ...options.gatewayEnv,
    };
    const log = join(dataDir, `gateway-${index}.log`);
    running.push(await startProcess(each, { name: 'gateway', program: 'gateway/main.ts', env, log }));
  }
  const gateways = running.slice(cores.length);

  return {
    url,
    corePort,
    grpcPort,
    coreAddress: called(0),
    serviceToken,
    databaseUrl,
    dataDir,
    cores,
    gateways,
    createAccount: (account) =>
      createAccount({ corePort, serviceToken }, { name: 'Test', plan: Plan.BUSINESS, ...account }),
    stop,
  };
}

async function startProcess(port: number, options: ChildOptions): Promise<Process> {
  let child: Child = await startChild(options);
  const kill = (signal: NodeJS.Signals = 'SIGKILL') => child.stop(signal);
  return {
    get pid() {
      return child.pid;
    },
    get ended() {
      return child.ended;
    },
    url: `http://${LOOPBACK}:${port}`,
    kill,
    async restart() {
      await kill();
      child = await startChild(options);
    },
    log: () => readFile(options.log, 'utf8'),
  };
}

/** The database URL with the gateway role, if the server has it. */
function asGateway(databaseUrl: string): string {
  const gatewayUrl = inject('gatewayUrl');
  if (gatewayUrl === null) return databaseUrl;
  const url = new URL(gatewayUrl);
  url.pathname = new URL(databaseUrl).pathname;
  return url.href;
}

function ports(count: number): Promise<number[]> {
  return Promise.all(Array.from({ length: count }, freePort));
}

function at(list: readonly number[], index: number): number {
  const found = list[index];
  if (found === undefined) throw new Error('At least one core is needed.');
  return found;
}
