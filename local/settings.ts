import { isIPv6 } from 'node:net';
import { resolve } from 'node:path';
import { OperatorError } from '../common/runtime/operator-error.ts';
import {
  flag,
  INVALID,
  optionalOrigin,
  optionalText,
  readVariables,
  restricted,
  type VariableType,
} from '../common/runtime/variables.ts';
import { TELEMETRY_VARIABLES } from '../common/telemetry/variables.ts';
import { DASHBOARD_VARIABLES } from '../dashboard/server/config.ts';
import { GATEWAY_VARIABLES } from '../gateway/config.ts';
import { CORE_VARIABLES } from '../src/config.ts';
import { LOOPBACK } from './free-port.ts';

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
  /** The host that gateway and dashboard listen on; cores listen on the loopback interface only. `LISTEN_HOST`. */
  readonly listenHost: string;
  /** The host of the addresses of gateway and dashboard: `localhost`, unless these listen on another one only. */
  readonly host: string;
  /** The start of scan URLs. `PUBLIC_URL`, default `http://$host:$PORT`. */
  readonly publicUrl: string;
  /**
   * `DASHBOARD_URL`, default `http://$host:$DASHBOARD_PORT`; undefined if the dashboard requires https on this host.
   */
  readonly dashboardUrl: string | undefined;
  /** A Postgres to use instead of a local one. `DATABASE_URL`. */
  readonly databaseUrl: string | undefined;
  /**
   * Whether the account of a new installation gets sample data, also the rest after an interruption. `SAMPLE`, default
   * true.
   */
  readonly sample: boolean;
}

/** Values of `LISTEN_HOST` with which `localhost` leads to this machine. */
const REACHED_AS_LOCALHOST = ['localhost', LOOPBACK, '0.0.0.0', '::'];

/** The processes of a local run have consecutive ports for metrics. */
const METRICS_PORTS = 4;

const VARIABLES = {
  DATA_DIR: CORE_VARIABLES.DATA_DIR,
  PORT: { type: knownPort(GATEWAY_VARIABLES.PORT.type) },
  CORE_PORT: { type: knownPort(CORE_VARIABLES.CORE_PORT.type) },
  GRPC_PORT: { type: knownPort(CORE_VARIABLES.GRPC_PORT.type) },
  DASHBOARD: { type: flag(true) },
  DASHBOARD_PORT: { type: knownPort(DASHBOARD_VARIABLES.DASHBOARD_PORT.type) },
  DASHBOARD_URL: DASHBOARD_VARIABLES.DASHBOARD_URL,
  METRICS_PORT: { type: firstMetricsPort(TELEMETRY_VARIABLES.METRICS_PORT.type) },
  LISTEN_HOST: GATEWAY_VARIABLES.LISTEN_HOST,
  PUBLIC_URL: { type: optionalOrigin('http://$host:$PORT') },
  DATABASE_URL: { type: optionalText('a Postgres address') },
  SAMPLE: { type: flag(true) },
};

/** Reads the settings; an empty variable counts as unset. Throws an `OperatorError` if any is invalid. */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const values = readVariables(VARIABLES, env);
  expectOtherPorts(values);
  const host = hostOf(values.LISTEN_HOST);
  const defaultDashboardUrl = `http://${host}:${values.DASHBOARD_PORT}`;
  const isAccepted = DASHBOARD_VARIABLES.DASHBOARD_URL.type.read(defaultDashboardUrl, env) !== INVALID;
  return {
    dataDir: resolve(values.DATA_DIR),
    port: values.PORT,
    corePort: values.CORE_PORT,
    grpcPort: values.GRPC_PORT,
    dashboardPort: values.DASHBOARD ? values.DASHBOARD_PORT : undefined,
    listenHost: values.LISTEN_HOST,
    host,
    publicUrl: values.PUBLIC_URL ?? `http://${host}:${values.PORT}`,
    dashboardUrl: values.DASHBOARD_URL ?? (isAccepted ? defaultDashboardUrl : undefined),
    databaseUrl: values.DATABASE_URL,
    sample: values.SAMPLE,
  };
}

function hostOf(listenHost: string): string {
  if (REACHED_AS_LOCALHOST.includes(listenHost)) return 'localhost';
  return isIPv6(listenHost) ? `[${listenHost}]` : listenHost;
}

function firstMetricsPort(type: VariableType<number | undefined>): VariableType<number | undefined> {
  const last = 65_536 - METRICS_PORTS;
  const name = `a port from 1 to ${last}, whose following ${METRICS_PORTS - 1} are used, too`;
  return restricted(type, (value) => value === undefined || (value > 0 && value <= last), name);
}

/** A process whose port is that of another one could not start. */
function expectOtherPorts(values: ReturnType<typeof readVariables<typeof VARIABLES>>): void {
  const { METRICS_PORT: first, PORT, CORE_PORT, GRPC_PORT, DASHBOARD, DASHBOARD_PORT } = values;
  const ports = Object.entries({ PORT, CORE_PORT, GRPC_PORT, ...(DASHBOARD && { DASHBOARD_PORT }) });
  for (const [index, [name, port]] of ports.entries()) {
    const [same] = ports.slice(0, index).find(([, other]) => other === port) ?? [];
    if (same !== undefined) throw new OperatorError(`${same} and ${name} must differ: both are ${port}.`);
  }
  if (first === undefined) return;
  for (const [name, port] of ports) {
    if (port >= first && port < first + METRICS_PORTS)
      throw new OperatorError(
        `METRICS_PORT ${first} and the ${METRICS_PORTS - 1} ports after it are used, among them ${name} ${port}.`,
      );
  }
}

/** The same port without 0, which does not tell the other programs where to connect. */
function knownPort(type: VariableType<number>): VariableType<number> {
  return restricted(type, (value) => value > 0, 'a port: 1 to 65535');
}
