import type { Logger } from 'pino';
import { readKafkaSecurity } from '../common/log/kafka-variables.ts';
import { openLog } from '../common/log/open.ts';
import { TOPICS } from '../common/log/topics.ts';
import { isUnavailable } from '../common/postgres/unavailable.ts';
import { measureEventLoop } from '../common/runtime/event-loop.ts';
import { exitOnFatalErrors } from '../common/runtime/fatal-errors.ts';
import { openLogger } from '../common/runtime/logger.ts';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { stopRequest } from '../common/runtime/stop-request.ts';
import { readVariables } from '../common/runtime/variables.ts';
import { sweepIdempotency } from './access/idempotency.ts';
import { serviceTokens } from './access/service-token.ts';
import { startBatchWorker } from './batches/background.ts';
import { archiveOf, closing, platformOf, republishAllRoutes, services } from './compose.ts';
import { CORE_VARIABLES, type CoreConfig } from './config.ts';
import { openDatabase } from './db/database.ts';
import { startChecks } from './domains/checks.ts';
import { entities } from './entities.ts';
import { type Relay, startRelayOver } from './events/relay.ts';
import { startTopicUpkeep } from './events/topic-upkeep.ts';
import { serve } from './rpc/serve.ts';
import { openTls, type Tls } from './rpc/tls.ts';
import { startRecorder } from './scans/recording/recorder.ts';
import { makeSalts } from './scans/recording/visitors.ts';
import { sealWith } from './webhooks/seal.ts';
import { startWebhooks } from './webhooks/start.ts';

/** How long calls in hand may take when the core is asked to stop, in ms. */
const GRACE_MS = 10_000;

/** How long the whole stop may take, in ms: a connection that nobody answers on must not keep the process. */
const STOP_MS = 25_000;

const SWEEP_MS = 60_000;

/** Starts the roles that are asked for and stops them in the opposite order; nothing else is decided here. */
async function main(config: CoreConfig): Promise<void> {
  const logger = openLogger(config.LOG_LEVEL, { process: 'core' });
  exitOnFatalErrors(logger);
  measureEventLoop();
  await using running = new AsyncDisposableStack();
  running.defer(() => logger.info('the core has stopped'));
  const database = await openDatabase(config.DATABASE_URL, config.DATABASE_CONNECTIONS, entities, logger);
  running.defer(() => database.close());
  await database.migrate();
  // Gateways need them as soon as they start, and there may be no recorder yet.
  await makeSalts(database.pool, Date.now());
  const log = openLog({
    kafkaBrokers: config.KAFKA_BROKERS,
    kafkaSecurity: readKafkaSecurity(config),
    databaseUrl: config.DATABASE_URL,
    clientId: 'signpost-core',
    logger,
  });
  running.defer(() => log.close());
  const roles = new Set(config.ROLES);
  const { pool } = database;
  const closed = closing(config, database);

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
    relay = await startRelayOver(topics, { pool, log, logger, keptHours: config.OUTBOX_RETENTION_HOURS });
    running.defer(relay.stop);
  }
  if (roles.has('recorder')) {
    const recorder = await startRecorder({ log, database, logger, archive: archiveOf(config) });
    running.defer(() => recorder.stop());
  }
  const changed = () => relay?.wake();
  const seal = sealWith(config.SECRET_KEY, config.FORMER_SECRET_KEY);
  if (roles.has('worker')) {
    const worker = startBatchWorker({
      databaseUrl: config.DATABASE_URL,
      pool,
      platformUrl: config.PUBLIC_URL,
      logger,
      changed,
    });
    running.defer(() => worker.stop());
    const checks = startChecks({ database, platform: platformOf(config), changed, logger });
    running.defer(() => checks.stop());
    const { WEBHOOKS_ALLOW_PRIVATE: allowPrivate, DNS_RESOLVERS: resolvers } = config;
    const webhooks = startWebhooks({ pool, log, seal, allowPrivate, resolvers, logger });
    running.defer(() => webhooks.stop());
    const sweep = () => {
      closed.sweep().catch((error: unknown) => logger.warn({ err: error }, 'a closed account is not cleared yet'));
    };
    sweep();
    const sweeper = setInterval(sweep, SWEEP_MS);
    running.defer(() => clearInterval(sweeper));
  }
  const stopping = new AbortController();
  const ports = {};
  if (roles.has('rpc')) {
    const sweeper = setInterval(() => {
      sweepIdempotency(pool).catch((error: unknown) => logger.warn({ err: error }, 'old idempotency keys were kept'));
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
        clearance: closed,
        seal,
        logger,
        stopping: stopping.signal,
        changed,
      }),
      pool,
      tokens: serviceTokens(config.SERVICE_TOKEN),
      parts: relay ? { relay: relay.working } : {},
      tls,
      logger,
    });
    running.defer(() => servers.stop(GRACE_MS));
    Object.assign(ports, { connectPort: servers.connectPort, grpcPort: servers.grpcPort });
  }
  // Whoever hears that it is ready may ask it to stop at once.
  const asked = stopRequest();
  logger.info({ roles: [...roles], ...ports }, 'the core is ready');
  process.send?.({ type: 'ready', ...ports });
  const reason = await asked;
  logger.info({ reason }, 'the core stops');
  stopping.abort();
  setTimeout(() => {
    logger.error('the core has not stopped in time and ends as it is');
    process.exit(1);
  }, STOP_MS).unref();
}

function tlsOf({ TLS_CERT: cert, TLS_KEY: key, TLS_CLIENT_CA: clientCa }: CoreConfig, logger: Logger): Tls | undefined {
  if (cert !== undefined && key !== undefined) return openTls({ cert, key, clientCa }, logger);
  if (cert === undefined && key === undefined && clientCa === undefined) return undefined;
  throw new OperatorError('TLS_CERT and TLS_KEY are needed both, and for TLS_CLIENT_CA too.');
}

try {
  await main(readVariables(CORE_VARIABLES, process.env));
} catch (error) {
  const sentence = sentenceOf(error);
  if (sentence !== undefined) console.error(sentence);
  else openLogger('fatal', { process: 'core' }).fatal({ err: error }, 'the core ends after an unexpected error');
  process.exitCode = 1;
}
// Connections that a library keeps must not keep the process.
process.exit();

/** What stops a start, for the person who started it; undefined where nobody expected it. */
function sentenceOf(error: unknown): string | undefined {
  const { code, message, port } = error as NodeJS.ErrnoException & { port?: number };
  if (code === 'EADDRINUSE') return `Port ${port} is taken.`;
  if (code === 'EACCES') return `Port ${port} is not allowed.`;
  if (isUnavailable(error)) return `Postgres does not answer: ${message}`;
  return error instanceof OperatorError ? message : undefined;
}
