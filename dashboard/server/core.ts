import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { type Client, Code, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { context, propagation } from '@opentelemetry/api';
import type { Logger } from 'pino';
import { Agent } from 'undici';
import { METADATA } from '../../common/contract/metadata.ts';
import { methodName } from '../../common/contract/method-name.ts';
import { throttledReport } from '../../common/runtime/throttled-report.ts';
import { observeCalls } from '../../common/telemetry/observe-calls.ts';
import { Health, HealthCheckResponse_ServingStatus } from '../../proto/gen/grpc/health/v1/health_pb.ts';
import { AccountsService } from '../../proto/gen/signpost/accounts/v1/accounts_pb.ts';

/** How long the server's own calls may take, in ms: people wait for them when they sign in or open the dashboard. */
const OWN_TIMEOUT_MS = 10_000;

/** How long a connection may take to be established, TLS included, in ms. */
const CONNECT_MS = 5_000;

/**
 * The most connections to the core for the server's own calls, some of which anyone may cause, and for those of
 * sessions: a core accepts 4,096 from all its callers. Streams keep one each.
 */
const OWN_CONNECTIONS = 64;
const CALL_CONNECTIONS = 1_000;

/** The shortest time between two log lines about calls that no core answered, in ms: every readiness check is one. */
const REPORT_MS = 60_000;

/** The core, as the dashboard's server calls it. */
export interface Core {
  /** `http://host:port`. */
  readonly origin: string;
  /** For calls of the dashboard itself, which act for no account. */
  readonly accounts: Client<typeof AccountsService>;
  /** Connections for forwarded calls. */
  readonly agent: Agent;
  /** What authenticates a call, and names the member that it acts for. `account`: `acct_…`; `member`: `mbr_…`. */
  metadata(actsFor?: { readonly account: string; readonly member: string }): Record<string, string>;
  /** Whether a core can be reached and serves. */
  isServing(): Promise<boolean>;
  close(): Promise<void>;
}

/** `ca`: PEM; unencrypted if undefined. It connects with the first call, so it does not need a running core. */
export function connectCore(options: {
  host: string;
  port: number;
  ca: Buffer | undefined;
  serviceToken: string;
  logger: Logger;
}): Core {
  const { host, port, ca, serviceToken, logger } = options;
  const report = throttledReport(REPORT_MS, (failures, err: unknown) => {
    logger.warn({ failures, err }, 'the dashboard could not reach a core');
  });
  const origin = `${ca ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const metadata: Core['metadata'] = (actsFor) => ({
    authorization: `Bearer ${serviceToken}`,
    [METADATA.actor]: 'dashboard',
    ...(actsFor && { [METADATA.account]: actsFor.account, [METADATA.member]: actsFor.member }),
  });
  const calls = observeCalls('signpost.dashboard', 'connectrpc');
  const ownAgent = new (ca ? HttpsAgent : HttpAgent)({ keepAlive: true, maxSockets: OWN_CONNECTIONS });
  const transport = createConnectTransport({
    baseUrl: origin,
    httpVersion: '1.1',
    defaultTimeoutMs: OWN_TIMEOUT_MS,
    nodeOptions: { agent: ownAgent, timeout: OWN_TIMEOUT_MS, ...(ca && { ca }) },
    interceptors: [
      (next) => async (request) => {
        try {
          return await calls.run(methodName(request.method), () => {
            const headers = metadata();
            propagation.inject(context.active(), headers);
            for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
            return next(request);
          });
        } catch (error) {
          // Errors of the core itself have details.
          if (error instanceof ConnectError && error.details.length === 0) report(1, error);
          throw error;
        }
      },
    ],
  });
  const agent = new Agent({ connections: CALL_CONNECTIONS, connect: { timeout: CONNECT_MS, ...(ca && { ca }) } });
  const health = createClient(Health, transport);
  return {
    origin,
    metadata,
    agent,
    accounts: createClient(AccountsService, transport),
    async isServing() {
      try {
        const { status } = await health.check({});
        return status === HealthCheckResponse_ServingStatus.SERVING;
      } catch {
        return false;
      }
    },
    async close() {
      ownAgent.destroy();
      await agent.destroy();
    },
  };
}

/** Whether a call failed because of the core or the way to it, rather than because of what was asked. */
export function isCoreFailure({ code }: ConnectError): boolean {
  return code !== Code.NotFound && code !== Code.InvalidArgument && code !== Code.PermissionDenied;
}
