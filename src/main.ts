import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { readKafkaSecurity } from '../common/log/kafka-variables.ts';
import { openLog } from '../common/log/open.ts';
import { TOPICS } from '../common/log/topics.ts';
import { listen } from '../common/postgres/notifications.ts';
import { refusalOf } from '../common/postgres/refusal.ts';
import { exitOnFatalErrors } from '../common/runtime/fatal-errors.ts';
import { logConsole } from '../common/runtime/log-console.ts';
import { logWarnings } from '../common/runtime/log-warnings.ts';
import { openLogger } from '../common/runtime/logger.ts';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { runInBackground } from '../common/runtime/run-in-background.ts';
import { shared } from '../common/runtime/shared.ts';
import { exitWithParent, stopRequest } from '../common/runtime/stop-request.ts';
import { readVariables } from '../common/runtime/variables.ts';
import { serveObserved } from '../common/telemetry/serve.ts';
import { startTelemetry } from '../common/telemetry/start.ts';
import { deleteExpiredKeys } from './access/idempotency.ts';
import { serviceTokens } from './access/service-token.ts';
import { forgetEndedSessions } from './accounts/ended-sessions.ts';
import { deleteExpiredLinks } from './accounts/sign-in-links.ts';
import { measureBacklogs, measurePool } from './backlog-metrics.ts';
import { startRelabelledAnnouncements } from './codes/relabelled-codes.ts';
import {
  accountCleanupFor,
  archiveOptions,
  backgroundTasks,
  platformOf,
  republishAllRoutes,
  services,
} from './compose.ts';
import { CORE_VARIABLES, type CoreConfig } from './config.ts';
import { openDatabase } from './db/database.ts';
import { expectOwnSessions } from './db/pooled-sessions.ts';
import { repeatWhileSlow } from './db/repeat-while-slow.ts';
import { startChecks } from './domains/checks.ts';
import { entities } from './entities.ts';
import { type Relay, startRelayWithTopics } from './events/relay.ts';
import { startTopicUpkeep } from './events/topic-upkeep.ts';
import { startWorker } from './jobs/worker.ts';
import { postgresAnswers, serve } from './rpc/serve.ts';
import { openTls, type Tls } from './rpc/tls.ts';
import { startRecorder } from './scans/recording/recorder.ts';
import { makeSalts } from './scans/recording/visitors.ts';
import { sealWith } from './webhooks/seal.ts';
import { startWebhooks } from './webhooks/start.ts';

/** How long running calls may take when the core is asked to stop, in ms. */
const GRACE_MS = 10_000;

/** Limit for the whole shutdown, in ms: an unresponsive connection must not keep the process alive. */
const STOP_MS = 25_000;

const SWEEP_MS = 60_000;

/** Starts the configured roles and stops them in reverse order. */
async function main(config: CoreConfig): Promise<void> {
  const logger = openLogger(config.LOG_LEVEL, { process: 'core' });
  exitOnFatalErrors(logger);
  exitWithParent();
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
    await makeSalts(database.pool, Date.now());
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
  const accountCleanup = accountCleanupFor(config, database);
  const notifications = listen(pool, logger);
  running.defer(() => notifications.stop());

  let relay: Relay | undefined;
  if (roles.has('relay')) {
    const topics = startTopicUpkeep({
      topics: TOPICS,
      pool,
      log,
      logger,
      republishRoutes: () => republishAllRoutes(database),
    });
    running.defer(() => topics.stop());
    relay = await startRelayWithTopics(topics, {
      pool,
      log,
      notifications,
      logger,
      retentionHours: config.OUTBOX_RETENTION_HOURS,
    });
    running.defer(relay.stop);
  }
  if (roles.has('recorder')) {
    const recorder = await startRecorder({ log, database, logger, archive: archiveOptions(config) });
    running.defer(() => recorder.stop());
  }
  const seal = sealWith(config.SECRET_KEY, config.FORMER_SECRET_KEY);
  if (roles.has('worker')) {
    const worker = startWorker({
      databaseUrl: config.DATABASE_URL,
      database,
      tasks: backgroundTasks(database, config.PUBLIC_URL),
      logger,
    });
    running.defer(() => worker.stop());
    const announcements = startRelabelledAnnouncements({
      pool,
      notifications,
      platformUrl: config.PUBLIC_URL,
      logger,
    });
    running.defer(() => announcements.stop());
    const checks = startChecks({ database, platform: platformOf(config), notifications, logger });
    running.defer(() => checks.stop());
    const { WEBHOOKS_ALLOW_PRIVATE: allowPrivate, DNS_RESOLVERS: resolvers } = config;
    const webhooks = startWebhooks({
      pool,
      log,
      notifications,
      seal,
      allowPrivate,
      resolvers,
      logger,
    });
    running.defer(() => webhooks.stop());
    const sweep = () => {
      accountCleanup
        .sweep()
        .catch((error: unknown) => logger.warn({ err: error }, 'clearing a closed account failed; it is retried'));
    };
    sweep();
    const sweeper = setInterval(sweep, SWEEP_MS);
    running.defer(() => clearInterval(sweeper));
  }
  const stopping = new AbortController();
  const ports = {};
  let drain = async () => {};
  if (roles.has('rpc')) {
    const sweeper = setInterval(() => {
      deleteExpiredKeys(pool).catch((error: unknown) =>
        logger.warn({ err: error }, 'deleting expired idempotency keys failed; it is retried'),
      );
      deleteExpiredLinks(pool).catch((error: unknown) =>
        logger.warn({ err: error }, 'deleting expired sign-in links failed; it is retried'),
      );
      forgetEndedSessions(pool).catch((error: unknown) =>
        logger.warn({ err: error }, 'forgetting ended sessions failed; it is retried'),
      );
    }, SWEEP_MS);
    running.defer(() => clearInterval(sweeper));
    const tls = tlsOf(config, logger);
    running.defer(() => tls?.close());
    const servers = await serve({
      host: config.LISTEN_HOST,
      connectPort: config.CORE_PORT,
      grpcPort: config.GRPC_PORT,
      register: services({
        config,
        database,
        log,
        accountCleanup,
        seal,
        logger,
        stopping: stopping.signal,
      }),
      pool,
      tokens: serviceTokens(config.SERVICE_TOKEN),
      standardCallers: { health: config.HEALTH_OPEN_TO, reflection: config.REFLECTION_OPEN_TO },
      parts: relay ? { relay: relay.healthy } : {},
      corsOrigins: config.CORS_ORIGINS,
      tls,
      logger,
    });
    running.defer(() => servers.stop(GRACE_MS));
    drain = () => {
      servers.drain();
      return sleep(config.DRAIN_SECONDS * 1_000);
    };
    Object.assign(ports, { connectPort: servers.connectPort, grpcPort: servers.grpcPort });
  }
  // Listen first: a parent may ask the process to stop as soon as it reports ready.
  const stopRequested = stopRequest();
  ready = shared(() => postgresAnswers(pool));
  logger.info({ roles: [...roles], ...ports }, 'the core is ready');
  process.send?.({ type: 'ready', ...ports });
  const reason = await stopRequested;
  logger.info({ reason }, 'the core is stopping');
  ready = undefined;
  await drain();
  stopping.abort();
  setTimeout(() => {
    logger.error('the core did not stop in time and exits');
    process.exit(1);
  }, STOP_MS).unref();
}

function tlsOf({ TLS_CERT: cert, TLS_KEY: key, TLS_CLIENT_CA: clientCa }: CoreConfig, logger: Logger): Tls | undefined {
  if (cert !== undefined && key !== undefined) return openTls({ cert, key, clientCa }, logger);
  if (cert === undefined && key === undefined && clientCa === undefined) return undefined;
  throw new OperatorError('TLS_CERT and TLS_KEY must be set together; TLS_CLIENT_CA needs both.');
}

try {
  await main(readVariables(CORE_VARIABLES, process.env));
} catch (error) {
  const sentence = sentenceOf(error);
  if (sentence !== undefined) console.error(sentence);
  else openLogger('fatal', { process: 'core' }).fatal({ err: error }, 'the core exits after an unexpected error');
  process.exitCode = 1;
}
// Connections that a library keeps open must not keep the process alive.
process.exit();

/** A sentence for the operator about an error at start; undefined for unexpected errors. */
function sentenceOf(error: unknown): string | undefined {
  return error instanceof OperatorError ? error.message : refusalOf(error);
}
