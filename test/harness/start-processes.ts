import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Child, type ChildOptions, startChild } from '../../local/child.ts';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import type { Process, Signpost, SignpostOptions } from './processes.ts';

/**
 * Starts the real programs on free ports; resolves when all are ready. `onStart` is passed at once what stops those
 * that run. Tests use `startSignpost`: this is what it shares with `services.ts`, which is no test.
 */
export async function startProcesses(
  options: SignpostOptions & Readonly<Record<'databaseUrl' | 'gatewayDatabaseUrl', string>>,
  onStart: (stop: () => Promise<void>) => void,
): Promise<Omit<Signpost, 'createAccount'>> {
  const { databaseUrl } = options;
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
  onStart(stop);

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
      DATABASE_URL: options.gatewayDatabaseUrl,
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

function ports(count: number): Promise<number[]> {
  return Promise.all(Array.from({ length: count }, freePort));
}

function at(list: readonly number[], index: number): number {
  const found = list[index];
  if (found === undefined) throw new Error('At least one core is needed.');
  return found;
}
