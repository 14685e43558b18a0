/** The roles that a core may have, each with what it runs. */
import type { Logger } from 'pino';
import type { Log } from '../common/log/log.ts';
import { TOPICS } from '../common/log/topics.ts';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { periodically } from '../common/runtime/periodically.ts';
import { deleteExpiredKeys } from './access/idempotency/key-records.ts';
import { serviceTokens } from './access/service-token.ts';
import type { AccountCleanup } from './accounts/cleanup.ts';
import { forgetEndedSessions } from './accounts/ended-sessions.ts';
import { deleteExpiredLinks } from './accounts/sign-in-links.ts';
import { startRelabelledAnnouncements } from './codes/update/relabelled-codes.ts';
import { archiveOptions, backgroundTasks, platformOf, republishAllRoutes, services } from './compose.ts';
import type { CoreConfig } from './config.ts';
import type { Database } from './db/database.ts';
import type { Notifications } from './db/notifications.ts';
import { startChecks } from './domains/checks.ts';
import { type Relay, startRelayWithTopics } from './events/relay.ts';
import { startTopicUpkeep } from './events/topic-upkeep.ts';
import { startWorker } from './jobs/worker.ts';
import { type Servers, serve } from './rpc/serve.ts';
import { openTls, type Tls } from './rpc/tls.ts';
import { startRecorder } from './scans/recording/recorder.ts';
import type { SecretCipher } from './webhooks/secret-cipher.ts';
import { startWebhooks } from './webhooks/start.ts';

/** What the roles of a process share. */
export interface CoreProcess {
  readonly config: CoreConfig;
  readonly database: Database;
  readonly log: Log;
  readonly notifications: Notifications;
  readonly accountCleanup: AccountCleanup;
  readonly secretCipher: SecretCipher;
  readonly logger: Logger;
  /** Stops what the roles have started, in reverse order. */
  readonly running: AsyncDisposableStack;
}

/** How long running calls may take when the core is asked to stop, in ms. */
const GRACE_MS = 10_000;

const SWEEP_MS = 60_000;

/** `relay`: publishes the outbox to the log. */
export async function startPublishing({
  config,
  database,
  log,
  notifications,
  logger,
  running,
}: CoreProcess): Promise<Relay> {
  const { pool } = database;
  const topics = startTopicUpkeep({
    topics: TOPICS,
    pool,
    log,
    logger,
    republishRoutes: (signal) => republishAllRoutes(database, signal),
  });
  running.defer(() => topics.stop());
  const relay = await startRelayWithTopics(topics, {
    pool,
    log,
    notifications,
    logger,
    retentionHours: config.OUTBOX_RETENTION_HOURS,
  });
  // Both at once: a relay whose start waits for routes to be republished ends when that is interrupted.
  running.defer(async () => void (await Promise.all([topics.stop(), relay.stop()])));
  return relay;
}

/** `recorder`: records scans. */
export function startRecording({ config, database, log, logger, running }: CoreProcess): void {
  const recorder = startRecorder({ log, database, logger, archive: archiveOptions(config) });
  running.defer(() => recorder.stop());
}

/** `worker`: does what no call waits for, or not for long. */
export function startBackgroundWork(core: CoreProcess): void {
  const { config, database, log, notifications, accountCleanup, secretCipher, logger, running } = core;
  const { pool } = database;
  const platformUrl = config.PUBLIC_URL;
  const tasks = backgroundTasks(database, platformUrl);
  const worker = startWorker({ databaseUrl: config.DATABASE_URL, database, tasks, logger });
  running.defer(() => worker.stop());
  const announcements = startRelabelledAnnouncements({ pool, notifications, platformUrl, logger });
  running.defer(() => announcements.stop());
  const checks = startChecks({ database, platform: platformOf(config), notifications, logger });
  running.defer(() => checks.stop());
  const { WEBHOOKS_ALLOW_PRIVATE: allowPrivate, DNS_RESOLVERS: resolvers } = config;
  const webhooks = startWebhooks({ pool, log, notifications, secretCipher, allowPrivate, resolvers, logger });
  running.defer(() => webhooks.stop());
  const clearing = periodically(SWEEP_MS, 'clearing a closed account', logger, accountCleanup.sweep);
  // Not awaited: a large account may take minutes, and the next core continues.
  running.defer(() => void clearing.stop());
}

/** `rpc`: answers calls. `parts`: see `serve`. `stopping`: aborted when the process is asked to stop. */
export async function serveCalls(
  core: CoreProcess,
  parts: Readonly<Record<string, () => boolean>>,
  stopping: AbortSignal,
): Promise<Servers> {
  const { config, database, logger, running } = core;
  const { pool } = database;
  const sweeps = [
    periodically(SWEEP_MS, 'deleting expired idempotency keys', logger, (signal) => deleteExpiredKeys(pool, signal)),
    periodically(SWEEP_MS, 'deleting expired sign-in links', logger, () => deleteExpiredLinks(pool)),
    periodically(SWEEP_MS, 'forgetting ended sessions', logger, () => forgetEndedSessions(pool)),
  ];
  running.defer(async () => void (await Promise.all(sweeps.map((sweep) => sweep.stop()))));
  const tls = tlsOf(config, logger);
  running.defer(() => tls?.close());
  const servers = await serve({
    host: config.LISTEN_HOST,
    connectPort: config.CORE_PORT,
    grpcPort: config.GRPC_PORT,
    register: services({ ...core, stopping }),
    pool,
    tokens: serviceTokens(config.SERVICE_TOKEN),
    standardCallers: { health: config.HEALTH_OPEN_TO, reflection: config.REFLECTION_OPEN_TO },
    parts,
    corsOrigins: config.CORS_ORIGINS,
    tls,
    logger,
  });
  running.defer(() => servers.stop(GRACE_MS));
  return servers;
}

function tlsOf({ TLS_CERT: cert, TLS_KEY: key, TLS_CLIENT_CA: clientCa }: CoreConfig, logger: Logger): Tls | undefined {
  if (cert !== undefined && key !== undefined) return openTls({ cert, key, clientCa }, logger);
  if (cert === undefined && key === undefined && clientCa === undefined) return undefined;
  throw new OperatorError('TLS_CERT and TLS_KEY must be set together; TLS_CLIENT_CA needs both.');
}
