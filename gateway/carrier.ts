import { join } from 'node:path';
import { readKafkaSecurity } from '../common/log/kafka-variables.ts';
import { openLog } from '../common/log/open.ts';
import { exitOnFatalErrors } from '../common/runtime/fatal-errors.ts';
import { openLogger } from '../common/runtime/logger.ts';
import { readVariables } from '../common/runtime/variables.ts';
import { GATEWAY_VARIABLES } from './config.ts';
import { inTime } from './in-time.ts';
import { measureCarrier } from './metrics.ts';
import { lockProcess } from './process/process-lock.ts';
import { onOrder, STATUS_MS, tell, toldToStop } from './process/processes.ts';
import { followRoutes } from './redirect/routes/follow-routes.ts';
import { openRouteTable } from './redirect/routes/route-table.ts';
import { shipScans } from './redirect/spool/ship-scans.ts';
import { keepShipped, SHIPPED } from './redirect/spool/shipped-segments.ts';

/** How long shipping may take when it is asked to stop, and the rest, in ms. */
const SHIP_MS = 3_000;
const CLOSE_MS = 2_000;
const CHECK_MS = 1_000;

/** Between the log and this machine's disk: routes into the table, scans out of the spools. Answers nobody. */
async function carry(): Promise<void> {
  const config = readVariables(GATEWAY_VARIABLES, process.env);
  const logger = openLogger(config.LOG_LEVEL, { process: 'gateway', part: 'carrier' });
  exitOnFatalErrors(logger);
  const stopped = toldToStop(logger);
  await using running = new AsyncDisposableStack();
  running.defer(() => logger.info('the carrier has stopped'));
  running.use(lockProcess(config.DATA_DIR, logger));
  const log = openLog({
    kafkaBrokers: config.KAFKA_BROKERS,
    kafkaSecurity: readKafkaSecurity(config),
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
    folder: join(config.DATA_DIR, 'spool'),
    log,
    logger,
    take: shipped.take,
    forceAll: config.SPOOL_RETENTION_HOURS > 0,
  });
  running.defer(() => shipper.stop(SHIP_MS));
  const measured = measureCarrier(() => ({ shipping: shipper.status(), routes: follower.status() }));
  const follower = followRoutes({ log, table, logger, onChange: measured.change });
  running.defer(() => follower.stop());

  onOrder((order) => {
    if (order.type !== 'held') return;
    const { worker, offer, frames } = order;
    shipper.publish(Buffer.from(frames)).then(
      () => tell({ type: 'taken', worker, offer }),
      () => undefined,
    );
  });
  let logAnswers = false;
  const tellStatus = () => {
    const status = { shipping: shipper.status(), routes: follower.status(), log: logAnswers };
    tell({ type: 'status', carrier: status });
  };
  const check = async () => {
    const answers = await inTime(log.check());
    const changed = answers !== logAnswers;
    logAnswers = answers;
    if (changed) tellStatus();
  };
  check();
  const checking = setInterval(check, CHECK_MS);
  const telling = setInterval(tellStatus, STATUS_MS);
  running.defer(() => {
    clearInterval(checking);
    clearInterval(telling);
  });
  tell({ type: 'ready' });
  await stopped;
  // A log that is away must not keep the process.
  setTimeout(() => {
    logger.warn('the carrier has not stopped in time and ends as it is');
    process.exit();
  }, SHIP_MS + CLOSE_MS);
}

await carry();
// Connections that a library keeps must not keep the process.
process.exit();
