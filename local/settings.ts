import { resolve } from 'node:path';
import { OperatorError } from '../common/runtime/operator-error.ts';

/** The settings of a local run, from its environment. */
export interface Settings {
  /** The folder of all data of a local run. `DATA_DIR`, default `.signpost`. */
  readonly dataDir: string;
  /** REST and scans. `PORT`, default 8080. */
  readonly port: number;
  /** Connect. `CORE_PORT`, default 8081. */
  readonly corePort: number;
  /** Native gRPC. `GRPC_PORT`, default 50051. */
  readonly grpcPort: number;
  /** The dashboard. `DASHBOARD_PORT`, default 8090; undefined without a dashboard: `DASHBOARD=false`. */
  readonly dashboardPort: number | undefined;
  /** The start of scan URLs. `PUBLIC_URL`, default `http://localhost:$PORT`. */
  readonly publicUrl: string;
  /** A Postgres to use instead of a local one. `DATABASE_URL`. */
  readonly databaseUrl: string | undefined;
  /** Whether the account of a new installation gets sample data. `SAMPLE`, default true. */
  readonly sample: boolean;
}

/** Reads the settings; an empty variable counts as unset. Throws an `OperatorError` if one is invalid. */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const port = readPort(env, 'PORT', 8080);
  return {
    dataDir: resolve(env.DATA_DIR || '.signpost'),
    port,
    corePort: readPort(env, 'CORE_PORT', 8081),
    grpcPort: readPort(env, 'GRPC_PORT', 50051),
    dashboardPort: readFlag(env, 'DASHBOARD') ? readPort(env, 'DASHBOARD_PORT', 8090) : undefined,
    publicUrl: env.PUBLIC_URL || `http://localhost:${port}`,
    databaseUrl: env.DATABASE_URL || undefined,
    sample: readFlag(env, 'SAMPLE'),
  };
}

function readPort(env: NodeJS.ProcessEnv, name: string, fallback: number): number {
  const port = Number(env[name] || fallback);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new OperatorError(`${name} must be a port: 1 to 65535.`);
  return port;
}

/** A variable that is `true` or `false`, by default true. */
function readFlag(env: NodeJS.ProcessEnv, name: string): boolean {
  const value = env[name] || 'true';
  if (value !== 'true' && value !== 'false') throw new OperatorError(`${name} must be true or false.`);
  return value === 'true';
}
