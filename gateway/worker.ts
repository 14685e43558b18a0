import { randomUUID } from 'node:crypto';
import type { Server } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { exitOnFatalErrors } from '../common/runtime/fatal-errors.ts';
import { logWarnings } from '../common/runtime/log-warnings.ts';
import { openLogger } from '../common/runtime/logger.ts';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { readConfiguredCa } from '../common/runtime/read-configured-file.ts';
import { readVariables } from '../common/runtime/variables.ts';
import { startTelemetry } from '../common/telemetry/start.ts';
import { GATEWAY_VARIABLES } from './config.ts';
import { createCoreClients } from './core/clients.ts';
import { readiness } from './health.ts';
import { limitAttempts, limitRequests } from './http/address-limits.ts';
import { originReader, proxiesIn } from './http/origin.ts';
import { measureRefusals } from './http/refusal-metrics.ts';
import { watchConnections } from './http/watch-connections.ts';
import { createHttpServer } from './http-server.ts';
import { measureScans, measureWorker } from './metrics.ts';
import { sendMetricsOnRequest } from './process/collect-metrics.ts';
import { listen } from './process/listen.ts';
import {
  type GatewayState,
  messageFromMain,
  onMessageFromMain,
  reportStatus,
  sendToMain,
  stopRequested,
} from './process/messages.ts';
import { lockProcess } from './process/process-lock.ts';
import { openCountryDatabase } from './redirect/answer/country-database.ts';
import { type FastLane, openFastLane } from './redirect/answer/fast-lane.ts';
import { openSalts } from './redirect/answer/salts.ts';
import { createScanHandler } from './redirect/answer/scan-handler.ts';
import { openRouteTable } from './redirect/routes/route-table.ts';
import { lookUpUnknownCodes } from './redirect/routes/unknown-codes.ts';
import { SPOOLS } from './redirect/spool/segments.ts';
import { openSpool } from './redirect/spool/spool.ts';
import { createApi } from './rest/api.ts';
import { limitAuthenticationFailures } from './rest/authentication-attempts.ts';

/** How long connections stay open for one last response on stop, in ms. */
const DRAIN_MS = 500;
/** How long pending responses may take on stop, then scans that can't be written to disk, and then the rest, in ms. */
const GRACE_MS = 10_000;
const SPOOL_MS = 2_000;
const CLOSE_MS = 2_000;

/**
 * Answers requests: composes the parts, and closes them in reverse order. `spoolName`: the folder of its spool, which
 * no other process has ever used. `sockets`: how many it listens on.
 */
async function main(number: number, spoolName: string, sockets: number): Promise<void> {
  const config = readVariables(GATEWAY_VARIABLES, process.env);
  const logger = openLogger(config.LOG_LEVEL, { process: 'gateway', part: `worker ${number}` });
  exitOnFatalErrors(logger);
  logWarnings(logger);
  const stopped = stopRequested(logger);
  // They may arrive before this worker listens: it then serves the connections that wait for it.
  const [drainRequested, closeRequested] = [messageFromMain('drain'), messageFromMain('close')];
  const telemetry = await startTelemetry({ config, service: 'signpost-gateway', part: `worker ${number}`, logger });
  sendMetricsOnRequest(telemetry);
  await using running = new AsyncDisposableStack();
  running.defer(() => logger.info('the worker has stopped'));
  running.defer(() => telemetry.stop());
  running.use(lockProcess(config.DATA_DIR, logger));
  const table = openRouteTable(join(config.DATA_DIR, 'routes'), logger, (shortCode, record) => {
    sendToMain({ type: 'unwritten', shortCode, record });
  });
  running.defer(() => table.close());
  const countRefusal = measureRefusals();
  const unknownLimit = limitAttempts(config.UNKNOWN_CODES_PER_MINUTE);
  const unknown = lookUpUnknownCodes(config.DATABASE_URL, unknownLimit, countRefusal, logger);
  running.defer(() => unknown.close());
  const countries = await openCountryDatabase(config.COUNTRY_DATABASE, logger);
  running.defer(() => countries.close());
  let pendingOffer = { id: '', accepted: () => {} };
  const spool = openSpool({
    folder: join(config.DATA_DIR, SPOOLS, spoolName),
    logger,
    offer(frames, accepted) {
      pendingOffer = { id: randomUUID(), accepted };
      sendToMain({ type: 'offered', offer: pendingOffer.id, frames });
    },
  });
  running.defer(() => spool.close(SPOOL_MS));
  const core = createCoreClients({
    addresses: config.CORE_ADDRESS,
    timeoutMs: config.CORE_TIMEOUT_MS,
    ca: config.CORE_CA === undefined ? undefined : readConfiguredCa('CORE_CA', config.CORE_CA),
  });
  running.defer(() => core.close());
  const originOf = originReader(config.TRUST_PROXY);
  const attempts = limitAuthenticationFailures(
    limitAttempts(config.FAILED_AUTHENTICATIONS_PER_MINUTE),
    ({ socket, headers }) => originOf(socket.remoteAddress ?? '', headers).address,
    countRefusal,
  );
  const api = await createApi({ core, logger, attempts, publicUrl: config.PUBLIC_URL, onRoute: table.apply });
  running.defer(() => api.close());
  // After everything that blocks the event loop, which would make the first read time out.
  const salts = openSalts(config.DATABASE_URL, logger);
  running.defer(() => salts.close());
  const scans = createScanHandler({
    table,
    unknown,
    spool,
    trustedProxies: config.TRUST_PROXY,
    countryHeader: config.COUNTRY_HEADER,
    countryOf: countries.countryOf,
    saltAt: salts.at,
    measure: telemetry.isMeasured ? measureScans() : undefined,
    logger,
  });

  let state: GatewayState = { carrier: undefined, workers: [] };
  onMessageFromMain((message) => {
    if (message.type === 'state') ({ state } = message);
    else if (message.type === 'published' && message.offer === pendingOffer.id) pendingOffer.accepted();
    else if (message.type === 'unwritten') table.serveUnwritten(message.shortCode, Buffer.from(message.record));
  });
  const status = () => ({
    answered: scans.answered(),
    isTableComplete: table.isComplete(),
    spool: spool.status(),
  });
  measureWorker(status);
  running.defer(reportStatus(() => ({ worker: status() })));

  let isStopping = false;
  const ready = readiness({ spool, table, core, state: () => state, isStopping: () => isStopping });
  const server = createHttpServer({
    scans,
    table,
    api,
    ready,
    coreTimeoutMs: config.CORE_TIMEOUT_MS,
    admit: limitRequests(config.CONNECTIONS_PER_ADDRESS, originOf),
    countRefusal,
    isStopping: () => isStopping,
  });
  const fast = openFastLane(server, scans, config.COUNTRY_HEADER, countRefusal);
  const watching = watchConnections(server, {
    mostPerAddress: config.CONNECTIONS_PER_ADDRESS,
    most: config.MAX_CONNECTIONS,
    isProxy: proxiesIn(config.TRUST_PROXY),
    isAnswering: fast.isAnswering,
    countRefusal,
    logger,
  });
  running.defer(() => watching.close());
  // Without the salts visitors are counted too high.
  await salts.attempted;
  const listening = await listen(server, config.PORT, sockets);
  const ended = Promise.withResolvers<void>();
  const drain = () => {
    isStopping = true;
    fast.drain();
  };
  drainRequested.then(drain);
  const closed = closeRequested.then(async ({ isInherited }) => {
    await listening.stop(isInherited, ended.resolve);
    await sendToMain({ type: 'closed' });
  });
  running.defer(async () => {
    drain();
    // A worker that was still starting accepts the connections that wait for it first.
    await closed;
    await stop(server, fast, ended.promise);
  });
  sendToMain({ type: 'ready' });
  await stopped;
  setTimeout(
    () => {
      logger.error('the worker has not stopped in time and exits');
      process.exit();
    },
    GRACE_MS + SPOOL_MS + CLOSE_MS,
  );
}

/**
 * Sends each connection one last response, because closing it while its next request is on its way would lose that
 * request. Then closes idle connections. `closed` resolves when there are no more connections.
 */
async function stop(server: Server, fast: FastLane, closed: Promise<void>): Promise<void> {
  await Promise.race([closed, sleep(DRAIN_MS)]);
  server.closeIdleConnections();
  // For connections whose last response was begun before the stop and is still being sent.
  server.keepAliveTimeout = 1;
  fast.end();
  const timer = setTimeout(() => {
    server.closeAllConnections();
    fast.destroy();
  }, GRACE_MS);
  await closed;
  clearTimeout(timer);
}

try {
  const [, , number, spoolName = '', sockets] = process.argv;
  await main(Number(number), spoolName, Number(sockets));
} catch (error) {
  if (!(error instanceof OperatorError)) throw error;
  await sendToMain({ type: 'failed', sentence: error.message });
}
// Connections that a library keeps open must not keep the process alive.
process.exit();
