import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Interceptor } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { startChild } from '../../local/child.ts';
import { createAccount, type NewAccount } from '../../local/create-account.ts';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { startPostgres } from '../../local/postgres.ts';
import { Plan } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';

/**
 * A Signpost for benchmarks, set up like a local run: Postgres, a core for RPCs, one for background work, a gateway.
 */
export interface Platform extends AsyncDisposable {
  /** The base URL of REST and scans. */
  readonly url: string;
  readonly databaseUrl: string;
  readonly pids: Readonly<Record<'core' | 'worker' | 'gateway' | 'postgres', number>>;
  /** The core's ports. */
  readonly ports: Readonly<Record<'connect' | 'grpc', number>>;
  /** Paths of the processes' logs. */
  readonly logs: Readonly<Record<'core' | 'worker' | 'gateway', string>>;
  newAccount(): Promise<NewAccount>;
  /** Another gateway, with a route table and spool of its own. `env` overrides the variables of the first. */
  addGateway(env: Readonly<Record<string, string>>): Promise<{ readonly port: number; readonly pid: number }>;
  /** A transport to the core's Connect port for an internal service that acts for an account. */
  transportFor(accountId: string): ReturnType<typeof createConnectTransport>;
}

/** `env`: variables for cores and gateway, which override those set here. */
export async function startPlatform(env: Readonly<Record<string, string>> = {}): Promise<Platform> {
  const running = new AsyncDisposableStack();
  try {
    const folder = await mkdtemp(join(tmpdir(), 'signpost-bench-'));
    running.defer(() => rm(folder, { recursive: true, force: true }));
    const postgres = await startPostgres({ folder: join(folder, 'postgres') });
    running.defer(() => postgres.stop());
    const [postgresPid] = (await readFile(join(folder, 'postgres', 'data', 'postmaster.pid'), 'latin1')).split('\n', 1);
    const [port, corePort, grpcPort] = [await freePort(), await freePort(), await freePort()];
    const serviceToken = randomBytes(32).toString('hex');
    const url = `http://${LOOPBACK}:${port}`;
    const logs = {
      core: join(folder, 'core.log'),
      worker: join(folder, 'worker.log'),
      gateway: join(folder, 'gateway.log'),
    };
    const shared = { PATH: process.env.PATH, LOG_LEVEL: 'warn', PUBLIC_URL: url, ...env };
    const coreEnv = {
      ...shared,
      DATABASE_URL: postgres.url,
      CORE_PORT: String(corePort),
      GRPC_PORT: String(grpcPort),
      SERVICE_TOKEN: serviceToken,
      SECRET_KEY: randomBytes(32).toString('base64'),
    };
    const startCore = async (name: 'core' | 'worker', roles: string) => {
      const child = await startChild({
        name,
        program: 'src/main.ts',
        log: logs[name],
        env: { ...coreEnv, ROLES: roles },
      });
      running.defer(() => child.stop());
      return child;
    };
    const core = await startCore('core', 'rpc');
    const worker = await startCore('worker', 'relay,recorder,worker');
    const startGateway = async (gatewayPort: number, name: string, more: Readonly<Record<string, string>> = {}) => {
      const child = await startChild({
        name,
        program: 'gateway/main.ts',
        log: logs.gateway,
        env: {
          ...shared,
          DATABASE_URL: postgres.gatewayUrl,
          PORT: String(gatewayPort),
          DATA_DIR: join(folder, name),
          CORE_ADDRESS: `${LOOPBACK}:${grpcPort}`,
          ...more,
        },
      });
      running.defer(() => child.stop());
      return child;
    };
    const gateway = await startGateway(port, 'gateway');
    return {
      url,
      ports: { connect: corePort, grpc: grpcPort },
      databaseUrl: postgres.url,
      pids: { core: core.pid, worker: worker.pid, gateway: gateway.pid, postgres: Number(postgresPid) },
      logs,
      newAccount: () => createAccount({ corePort, serviceToken }, { name: 'Bench', plan: Plan.ENTERPRISE }),
      async addGateway(more) {
        const added = await freePort();
        return { port: added, pid: (await startGateway(added, `gateway-${added}`, more)).pid };
      },
      transportFor(accountId) {
        const identify: Interceptor = (next) => (request) => {
          request.header.set('authorization', `Bearer ${serviceToken}`);
          request.header.set('signpost-account', accountId);
          return next(request);
        };
        const baseUrl = `http://${LOOPBACK}:${corePort}`;
        return createConnectTransport({ baseUrl, httpVersion: '1.1', interceptors: [identify] });
      },
      [Symbol.asyncDispose]: () => running.disposeAsync(),
    };
  } catch (error) {
    await running.disposeAsync();
    throw error;
  }
}
