import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { listenFailure } from '../../common/http/listen-failure.ts';
import { exitOnFatalErrors, reportFatalError } from '../../common/runtime/fatal-errors.ts';
import { logWarnings } from '../../common/runtime/log-warnings.ts';
import { openLogger } from '../../common/runtime/logger.ts';
import { OperatorError } from '../../common/runtime/operator-error.ts';
import { readConfiguredCa } from '../../common/runtime/read-configured-file.ts';
import { singleFlight } from '../../common/runtime/single-flight.ts';
import { stopAtOnce, stopRequest } from '../../common/runtime/stop-request.ts';
import { readVariables } from '../../common/runtime/variables.ts';
import { serveObserved } from '../../common/telemetry/serve.ts';
import { startTelemetry } from '../../common/telemetry/start.ts';
import { DASHBOARD_VARIABLES, type DashboardConfig } from './config.ts';
import { connectCore } from './core.ts';
import { type OpenidProvider, openidProvider } from './openid-provider.ts';
import { createServer } from './server.ts';

/** The folder of the built pages. */
const APP = join(import.meta.dirname, '../app/dist');

/** How long running calls may take on stop, in ms; browsers continue streams elsewhere. */
const GRACE_MS = 10_000;

/** Composes the dashboard's server, and closes its parts in reverse order. */
async function main(config: DashboardConfig): Promise<void> {
  const logger = openLogger(config.LOG_LEVEL, { process: 'dashboard' });
  exitOnFatalErrors(logger);
  stopAtOnce();
  logWarnings(logger);
  const telemetry = await startTelemetry({ config, service: 'signpost-dashboard', logger });
  await using running = new AsyncDisposableStack();
  running.defer(() => logger.info('the dashboard has stopped'));
  running.defer(() => telemetry.stop());
  const dashboardUrl = config.DASHBOARD_URL ?? `http://localhost:${config.DASHBOARD_PORT}`;
  const core = connectCore({
    host: config.CORE_HOST,
    port: config.CORE_PORT,
    ca: config.CORE_CA === undefined ? undefined : readConfiguredCa('CORE_CA', config.CORE_CA),
    serviceToken: config.SERVICE_TOKEN.split(',')[0] ?? '',
    logger,
  });
  running.defer(() => core.close());
  const isServing = singleFlight(core.isServing);
  let isReady = false;
  running.use(
    await serveObserved({
      host: config.LISTEN_HOST,
      port: config.METRICS_PORT,
      collect: telemetry.collect,
      async unready() {
        if (!isReady) return 'The dashboard is starting or stopping.';
        return (await isServing()) ? undefined : 'The core is unavailable.';
      },
      logger,
    }),
  );
  const app = await createServer({
    dashboardUrl,
    publicUrl: config.PUBLIC_URL,
    secretKey: config.SECRET_KEY,
    trustedProxies: config.TRUST_PROXY,
    core,
    provider: providerOf(config, dashboardUrl),
    timeoutMs: config.CORE_TIMEOUT_MS,
    appFolder: APP,
    logger,
  });
  try {
    await app.listen({ host: config.LISTEN_HOST, port: config.DASHBOARD_PORT });
  } catch (error) {
    throw listenFailure('DASHBOARD_PORT', config.DASHBOARD_PORT, error);
  }
  running.defer(async () => {
    const closed = once(app.server, 'close');
    void app.close();
    await Promise.race([closed, sleep(GRACE_MS, undefined, { ref: false })]);
    app.server.closeAllConnections();
  });
  // Registered first, because a stop may be requested as soon as readiness is reported.
  const stopRequested = stopRequest();
  isReady = true;
  logger.info({ port: (app.server.address() as AddressInfo).port }, 'the dashboard is ready');
  process.send?.({ type: 'ready' });
  const reason = await stopRequested;
  isReady = false;
  logger.info({ reason }, 'the dashboard is stopping');
}

function providerOf(config: DashboardConfig, dashboardUrl: string): OpenidProvider | undefined {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret } = config;
  if (issuer === undefined && clientId === undefined && clientSecret === undefined) return undefined;
  if (issuer === undefined || clientId === undefined || clientSecret === undefined) {
    throw new OperatorError('OIDC_ISSUER, OIDC_CLIENT_ID and OIDC_CLIENT_SECRET must be set together.');
  }
  return openidProvider({ issuer, clientId, clientSecret, redirectUri: `${dashboardUrl}/sign-in/callback` });
}

try {
  await main(readVariables(DASHBOARD_VARIABLES, process.env));
} catch (error) {
  reportFatalError(error, { logAs: 'dashboard' });
}
process.exit();
