import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readKafkaSecurity } from '../common/log/kafka-variables.ts';
import { exitOnFatalErrors, reportFatalError } from '../common/runtime/fatal-errors.ts';
import { logWarnings } from '../common/runtime/log-warnings.ts';
import { openLogger } from '../common/runtime/logger.ts';
import { stopAtOnce, stopRequest } from '../common/runtime/stop-request.ts';
import { readVariables } from '../common/runtime/variables.ts';
import { serveObserved } from '../common/telemetry/serve.ts';
import { startTelemetry } from '../common/telemetry/start.ts';
import { onTicks } from './clock/ticks.ts';
import { GATEWAY_VARIABLES, type GatewayConfig } from './config.ts';
import { problemOf } from './health.ts';
import { measureProcesses } from './metrics.ts';
import { collectMetrics } from './process/collect-metrics.ts';
import { lockDataDir } from './process/data-dir-lock.ts';
import { defaultWorkers } from './process/default-workers.ts';
import { expectReadable, expectWritable } from './process/expect-access.ts';
import { inheritedPort } from './process/inherited-sockets.ts';
import { type CarrierStatus, STATUS_MS } from './process/messages.ts';
import { bindPort } from './process/port.ts';
import { killOrphanedProcesses } from './process/process-lock.ts';
import { programStarter } from './process/start-program.ts';
import { type SupervisedProcess, superviseProcess } from './process/supervised-process.ts';
import { superviseWorkers, type Workers } from './process/workers.ts';
import { repairRouteTable } from './redirect/routes/repair.ts';
import { openOrphanedSpools } from './redirect/spool/orphaned-spools.ts';
import { SPOOLS } from './redirect/spool/segments.ts';

/**
 * Starts the carrier and the workers, restarts them when they die, and forwards their messages; does nothing that could
 * fail. Workers end first, so that the carrier ships their last scans.
 */
async function main(config: GatewayConfig): Promise<void> {
  const logger = openLogger(config.LOG_LEVEL, { process: 'gateway' });
  exitOnFatalErrors(logger);
  stopAtOnce();
  logWarnings(logger);
  const telemetry = await startTelemetry({ config, service: 'signpost-gateway', part: 'main', logger });
  // Only the carrier uses it, but a mistake in it fails the start here, with one sentence.
  readKafkaSecurity(config);
  await using running = new AsyncDisposableStack();
  running.defer(() => logger.info('the gateway has stopped'));
  running.defer(() => telemetry.stop());
  expectWritable(config.DATA_DIR);
  if (config.COUNTRY_DATABASE !== undefined) expectReadable(config.COUNTRY_DATABASE);
  running.use(lockDataDir(config.DATA_DIR, logger));
  const spools = openOrphanedSpools(join(config.DATA_DIR, SPOOLS), logger);
  // If a leftover process may still be writing, its spool is shipped, and sealed by a later start.
  if (await killOrphanedProcesses(config.DATA_DIR, logger)) spools.addAll();
  const count = config.GATEWAY_WORKERS ?? defaultWorkers(availableParallelism(), process.constrainedMemory());
  const port =
    inheritedPort(config.PORT, count, process.env) ?? (await bindPort(config.LISTEN_HOST, config.PORT, count, logger));
  let isReady = false;
  let carrierStatus: CarrierStatus | undefined;
  let carrier: SupervisedProcess | undefined;
  let workers: Workers | undefined;
  const processes = () =>
    new Map([
      ...(workers?.processes ?? []).map((worker, number) => [`worker ${number}`, worker] as const),
      ...(carrier ? [['carrier', carrier] as const] : []),
    ]);
  const collector = collectMetrics(processes);
  const measured = measureProcesses(telemetry, collector, () => processes().keys());
  running.use(
    await serveObserved({
      host: config.LISTEN_HOST,
      port: config.METRICS_PORT,
      collect: measured.collect,
      async unready() {
        if (!isReady) return 'The gateway is starting or stopping.';
        if (!workers?.areServing()) return 'Not all workers are running.';
        const statuses = workers.statuses();
        const problem = problemOf({
          failing: statuses.find(({ spool }) => spool.failing !== undefined)?.spool.failing,
          isTableComplete: statuses.every(({ isTableComplete }) => isTableComplete),
        });
        return problem && `${problem.charAt(0).toUpperCase()}${problem.slice(1)}.`;
      },
      logger,
    }),
  );
  const beforeRestart = await repairRouteTable({
    table: join(config.DATA_DIR, 'routes'),
    killUsers: () => Promise.all([...processes().values()].map((each) => each.kill())),
    logger,
  });

  let isStateSent = true;
  function sendState(): void {
    isStateSent = true;
    workers?.send({ type: 'state', state: { carrier: carrierStatus, workers: workers.statuses() } });
  }
  const startProgram = programStarter(config.DATA_DIR, logger);
  carrier = superviseProcess({
    name: 'carrier',
    logger,
    start: () => startProgram('carrier.ts', [], {}),
    onMessage(message) {
      if (message.type === 'published')
        workers?.processes[message.worker]?.send({ type: 'published', offer: message.offer });
      if (message.type === 'metrics') collector.receive(message.collection, message.scopes);
      if (message.type !== 'status' || !('carrier' in message)) return;
      carrierStatus = message.carrier;
      sendState();
    },
    onExit() {
      measured.restarted('carrier');
      carrierStatus = undefined;
      sendState();
    },
    beforeRestart,
  });
  running.defer(() => carrier.stop());
  workers = superviseWorkers({
    count,
    port,
    spools,
    startProgram,
    onMessage(worker, message) {
      if (message.type === 'metrics') collector.receive(message.collection, message.scopes);
      if (message.type === 'offered') carrier.send({ ...message, worker });
      if (message.type === 'unwritten') workers?.send(message);
      // A worker that has just started knows no state yet.
      if (message.type === 'status' || message.type === 'ready') isStateSent = false;
    },
    onExit: measured.restarted,
    beforeRestart,
    logger,
  });
  running.defer(() => workers.stop());
  running.defer(measured.stop);

  await Promise.all([workers.ready, carrier.ready]);
  running.defer(
    onTicks(STATUS_MS, () => {
      if (!isStateSent) sendState();
      spools.removeShipped();
    }),
  );
  // Registered first, because a stop may be requested as soon as readiness is reported.
  const stopRequested = stopRequest();
  isReady = true;
  logger.info({ port: port.number, workers: count }, 'the gateway is ready');
  process.send?.({ type: 'ready', port: port.number });
  const reason = await stopRequested;
  isReady = false;
  logger.info({ reason }, 'the gateway is stopping');
  if (config.DRAIN_SECONDS > 0) {
    workers.ask({ type: 'drain' });
    await sleep(config.DRAIN_SECONDS * 1_000);
  }
}

try {
  await main(readVariables(GATEWAY_VARIABLES, process.env));
} catch (error) {
  reportFatalError(error, { logAs: 'gateway' });
}
process.exit();
