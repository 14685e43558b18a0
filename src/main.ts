import { setTimeout as sleep } from 'node:timers/promises';
import { readKafkaSecurity } from '../common/log/kafka-variables.ts';
import { openLog } from '../common/log/open.ts';
import { postgresProblem } from '../common/postgres/postgres-problem.ts';
import { exitOnFatalErrors, reportFatalError } from '../common/runtime/fatal-errors.ts';
import { logConsole } from '../common/runtime/log-console.ts';
import { logWarnings } from '../common/runtime/log-warnings.ts';
import { openLogger } from '../common/runtime/logger.ts';
import { runInBackground } from '../common/runtime/run-in-background.ts';
import { singleFlight } from '../common/runtime/single-flight.ts';
import { stopAtOnce, stopRequest } from '../common/runtime/stop-request.ts';
import { readVariables } from '../common/runtime/variables.ts';
import { serveObserved } from '../common/telemetry/serve.ts';
import { startTelemetry } from '../common/telemetry/start.ts';
import { measureBacklogs, measurePool } from './backlog-metrics.ts';
import { accountCleanupFor } from './compose.ts';
import { CORE_VARIABLES, type CoreConfig } from './config.ts';
import { postgresNow } from './db/clock.ts';
import { openDatabase } from './db/database.ts';
import { listen } from './db/notifications.ts';
import { expectOwnSessions } from './db/pooled-sessions.ts';
import { repeatWhileSlow } from './db/repeat-while-slow.ts';
import { entities } from './entities.ts';
import { serveCalls, startBackgroundWork, startPublishing, startRecording } from './roles.ts';
import { postgresAnswers } from './rpc/serve.ts';
import { makeSalts } from './scans/recording/visitors.ts';
import { secretCipherWith } from './webhooks/secret-cipher.ts';

/** Limit for the whole shutdown, in ms: an unresponsive connection must not keep the process alive. */
const STOP_MS = 25_000;

/** Starts the configured roles and stops them in reverse order. */
async function main(config: CoreConfig): Promise<void> {
  const logger = openLogger(config.LOG_LEVEL, { process: 'core' });
  exitOnFatalErrors(logger);
  stopAtOnce();
  logWarnings(logger);
  const roles = new Set(config.ROLES);
  // Of the other roles only batches and changes of many targets have callers that wait.
  if (!roles.has('rpc')) runInBackground();
  const telemetry = await startTelemetry({ config, service: 'signpost-core', logger });
  await using running = new AsyncDisposableStack();
  running.use(logConsole(logger));
  running.defer(() => logger.info('the core has stopped'));
  running.defer(() => telemetry.stop());
  let ready: (() => Promise<boolean>) | undefined;
  running.use(
    await serveObserved({
      host: config.LISTEN_HOST,
      port: config.METRICS_PORT,
      collect: telemetry.collect,
      async unready() {
        if (!ready) return 'The core is starting or stopping.';
        return (await ready()) ? undefined : 'Postgres does not answer.';
      },
      logger,
    }),
  );
  const database = await openDatabase(config.DATABASE_URL, config.DATABASE_CONNECTIONS, entities, logger);
  running.defer(() => database.close());
  await repeatWhileSlow(async () => {
    await expectOwnSessions(database.pool);
    await (config.MIGRATE ? database.migrate() : database.expectMigrated());
    // Gateways need the salts when they start, possibly before any recorder runs.
    await makeSalts(database.pool, await postgresNow(database.pool));
  });
  const log = await openLog({
    kafkaBrokers: config.KAFKA_BROKERS,
    kafkaSecurity: readKafkaSecurity(config),
    kafkaPrefix: config.KAFKA_PREFIX,
    databaseUrl: config.DATABASE_URL,
    clientId: 'signpost-core',
    logger,
  });
  running.defer(() => log.close());
  const { pool } = database;
  measurePool(pool, config.DATABASE_CONNECTIONS);
  measureBacklogs(pool, roles);
  const notifications = listen(pool, logger);
  running.defer(() => notifications.stop());
  const core = {
    config,
    database,
    log,
    notifications,
    accountCleanup: accountCleanupFor(config, database),
    secretCipher: secretCipherWith(config.SECRET_KEY, config.FORMER_SECRET_KEY),
    logger,
    running,
  };
  const stopping = new AbortController();
  const relay = roles.has('relay') ? await startPublishing(core) : undefined;
  if (roles.has('recorder')) startRecording(core);
  if (roles.has('worker')) startBackgroundWork(core);
  const parts = relay ? { relay: relay.healthy } : {};
  const servers = roles.has('rpc') ? await serveCalls(core, parts, stopping.signal) : undefined;
  const ports = servers && { connectPort: servers.connectPort, grpcPort: servers.grpcPort };
  // Listen first: a parent may ask the process to stop as soon as it reports ready.
  const stopRequested = stopRequest();
  ready = singleFlight(() => postgresAnswers(pool));
  logger.info({ roles: [...roles], ...ports }, 'the core is ready');
  process.send?.({ type: 'ready', ...ports });
  const reason = await stopRequested;
  logger.info({ reason }, 'the core is stopping');
  ready = undefined;
  if (servers) {
    servers.drain();
    await sleep(config.DRAIN_SECONDS * 1_000);
  }
  stopping.abort();
  setTimeout(() => {
    logger.error('the core did not stop in time and exits');
    process.exit(1);
  }, STOP_MS).unref();
}

try {
  await main(readVariables(CORE_VARIABLES, process.env));
} catch (error) {
  reportFatalError(error, { sentenceOf: postgresProblem, logAs: 'core' });
}
// Connections that a library keeps open must not keep the process alive.
process.exit();
