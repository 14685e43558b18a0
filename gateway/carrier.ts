import { join } from 'node:path';
import { readKafkaSecurity } from '../common/log/kafka-variables.ts';
import { openLog } from '../common/log/open.ts';
import { exitOnFatalErrors } from '../common/runtime/fatal-errors.ts';
import { logWarnings } from '../common/runtime/log-warnings.ts';
import { openLogger } from '../common/runtime/logger.ts';
import { runInBackground } from '../common/runtime/run-in-background.ts';
import { readVariables } from '../common/runtime/variables.ts';
import { startTelemetry } from '../common/telemetry/start.ts';
import { onTicks } from './clock/ticks.ts';
import { GATEWAY_VARIABLES } from './config.ts';
import { measureCarrier } from './metrics.ts';
import { sendMetricsOnRequest } from './process/collect-metrics.ts';
import { onMessageFromMain, reportStatus, sendToMain, stopRequested } from './process/messages.ts';
import { lockProcess } from './process/process-lock.ts';
import { followRoutes } from './redirect/routes/follow-routes.ts';
import { openRouteTable } from './redirect/routes/route-table.ts';
import { SPOOLS } from './redirect/spool/segments.ts';
import { shipScans } from './redirect/spool/ship-scans.ts';
import { keepShipped, SHIPPED } from './redirect/spool/shipped-segments.ts';
import { respondsInTime } from './responds-in-time.ts';

/** How long shipping the last scans may take on stop, and then closing the rest, in ms. */
const SHIP_MS = 3_000;
const CLOSE_MS = 2_000;
/** How often the log is checked, for `/readyz`, in ms. */
const CHECK_MS = 2_000;

/** Copies routes from the log into the route table and scans from the spools to the log. Answers no requests. */
async function main(): Promise<void> {
  runInBackground();
  const config = readVariables(GATEWAY_VARIABLES, process.env);
  const logger = openLogger(config.LOG_LEVEL, { process: 'gateway', part: 'carrier' });
  exitOnFatalErrors(logger);
  logWarnings(logger);
  const stopped = stopRequested(logger);
  const telemetry = await startTelemetry({ config, service: 'signpost-gateway', part: 'carrier', logger });
  sendMetricsOnRequest(telemetry);
  await using running = new AsyncDisposableStack();
  running.defer(() => logger.info('the carrier has stopped'));
  running.defer(() => telemetry.stop());
  running.use(lockProcess(config.DATA_DIR, logger));
  const log = await openLog({
    kafkaBrokers: config.KAFKA_BROKERS,
    kafkaSecurity: readKafkaSecurity(config),
    kafkaPrefix: config.KAFKA_PREFIX,
    databaseUrl: config.DATABASE_URL,
    clientId: 'signpost-gateway',
    logger,
  });
  running.defer(() => log.close());
  const table = openRouteTable(join(config.DATA_DIR, 'routes'), logger);
  running.defer(() => table.close());
  const shipped = keepShipped(join(config.DATA_DIR, SHIPPED), config.SPOOL_RETENTION_HOURS, logger);
  running.defer(() => shipped.stop());
  const shipper = shipScans({
    folder: join(config.DATA_DIR, SPOOLS),
    log,
    logger,
    take: shipped.take,
    syncAll: config.SPOOL_RETENTION_HOURS > 0,
  });
  running.defer(() => shipper.stop(SHIP_MS));
  const metrics = measureCarrier({ shipper, routes: () => follower.status() });
  const follower = followRoutes({ log, table, logger, onChange: metrics.change });
  running.defer(() => follower.stop());

  onMessageFromMain((message) => {
    if (message.type !== 'offered') return;
    const { worker, offer, frames } = message;
    shipper.publish(Buffer.from(frames)).then(
      () => sendToMain({ type: 'published', worker, offer }),
      () => undefined,
    );
  });
  let isLogUp = false;
  const status = () => ({ carrier: { shipping: shipper.status(), routes: follower.status(), log: isLogUp } });
  const check = async () => {
    isLogUp = await respondsInTime(log.check());
  };
  check();
  running.defer(onTicks(CHECK_MS, check));
  running.defer(reportStatus(status));
  sendToMain({ type: 'ready' });
  await stopped;
  // An unavailable log must not keep the process alive.
  setTimeout(() => {
    logger.warn('the carrier has not stopped in time and exits');
    process.exit();
  }, SHIP_MS + CLOSE_MS);
}

await main();
// Connections that a library keeps open must not keep the process alive.
process.exit();
