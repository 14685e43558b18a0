import { join } from 'node:path';
import { LOOPBACK } from './free-port.ts';
import type { LocalPostgres } from './postgres.ts';
import type { Settings } from './settings.ts';

/** The secrets of the cores and the dashboard. */
export interface Secrets {
  /** One token, or several separated by commas. */
  readonly serviceToken: string;
  readonly secretKey: string;
}

/** The environments of the programs of a local run. */
export interface Environments {
  /** The environment of a program that is part of a core. */
  readonly core: NodeJS.ProcessEnv;
  /** Those of the core that answers calls, and of the one for background work. */
  readonly rpc: NodeJS.ProcessEnv;
  readonly worker: NodeJS.ProcessEnv;
  readonly gateway: NodeJS.ProcessEnv;
  /** `port`: what it listens on. */
  dashboard(port: number): NodeJS.ProcessEnv;
}

/** Each program gets `given`, and what differs from it. */
export function environmentsOf(
  given: NodeJS.ProcessEnv,
  settings: Settings,
  database: Pick<LocalPostgres, 'url' | 'gatewayUrl'>,
  secrets: Secrets,
): Environments {
  const { dataDir, port, corePort, grpcPort, publicUrl, dashboardUrl } = settings;
  const shared = {
    ...given,
    PORT: String(port),
    CORE_PORT: String(corePort),
    GRPC_PORT: String(grpcPort),
    PUBLIC_URL: publicUrl,
    // Everything is on this machine.
    TLS_CERT: undefined,
    TLS_KEY: undefined,
    TLS_CLIENT_CA: undefined,
    CORE_CA: undefined,
    CORE_HOST: LOOPBACK,
  };
  const core = {
    ...shared,
    DATA_DIR: dataDir,
    DATABASE_URL: database.url,
    SERVICE_TOKEN: secrets.serviceToken,
    SECRET_KEY: secrets.secretKey,
    LISTEN_HOST: LOOPBACK,
  };
  const metricsPort = Number(given.METRICS_PORT || Number.NaN);
  /** `METRICS_PORT` of the nth process: consecutive ports. */
  const metricsOf = (index: number) =>
    Number.isInteger(metricsPort) ? { METRICS_PORT: String(metricsPort + index) } : {};
  return {
    core,
    rpc: { ...core, ...metricsOf(0), ROLES: 'rpc' },
    worker: { ...core, ...metricsOf(1), ROLES: 'relay,recorder,worker' },
    gateway: {
      ...shared,
      ...metricsOf(2),
      DATA_DIR: join(dataDir, 'gateway'),
      // Each worker takes memory, and two behave like many.
      GATEWAY_WORKERS: given.GATEWAY_WORKERS || '2',
      DATABASE_URL: database.gatewayUrl,
      CORE_ADDRESS: `${LOOPBACK}:${grpcPort}`,
      // The gateway must not have the secrets of the cores and the dashboard.
      SERVICE_TOKEN: undefined,
      SECRET_KEY: undefined,
      FORMER_SECRET_KEY: undefined,
      OIDC_CLIENT_SECRET: undefined,
      ROLES: undefined,
    },
    // It has no need of the database.
    dashboard: (dashboardPort) => ({
      ...core,
      ...metricsOf(3),
      DASHBOARD_PORT: String(dashboardPort),
      DASHBOARD_URL: dashboardUrl,
      LISTEN_HOST: given.LISTEN_HOST,
      DATABASE_URL: undefined,
    }),
  };
}
