/** Puts the modules together: passes each what it needs from the others. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import { nameInRouteKey } from '../common/contract/route.ts';
import type { Log } from '../common/log/log.ts';
import { AdmissionService } from '../proto/gen/signpost/access/v1/admission_pb.ts';
import { AccountsService } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { AnalyticsService } from '../proto/gen/signpost/analytics/v1/analytics_pb.ts';
import { BatchesService } from '../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../proto/gen/signpost/codes/v1/codes_pb.ts';
import { DomainsService } from '../proto/gen/signpost/domains/v1/domains_pb.ts';
import { EventsService } from '../proto/gen/signpost/events/v1/events_pb.ts';
import { ImagesService } from '../proto/gen/signpost/images/v1/images_pb.ts';
import { ScansService } from '../proto/gen/signpost/scans/v1/scans_pb.ts';
import { TargetsService } from '../proto/gen/signpost/targets/v1/targets_pb.ts';
import { TaxonomyService } from '../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import { WebhooksService } from '../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';
import { deleteAccountApiRequests } from './access/api-requests.ts';
import { deleteAccountIdempotencyKeys } from './access/idempotency/key-records.ts';
import { admissionService } from './access/service.ts';
import { type AccountCleanup, createAccountCleanup } from './accounts/cleanup.ts';
import { accountsService } from './accounts/service.ts';
import { deleteAccountMembers } from './accounts/team.ts';
import { analyticsService } from './analytics/service.ts';
import { advance, BATCH_TASK } from './batches/advance.ts';
import { deleteAccountBatches } from './batches/delete-account-batches.ts';
import { batchesService } from './batches/service.ts';
import { cursors } from './calls/cursors.ts';
import { deleteAccountCodes, eraseAccountCodes } from './codes/delete/delete-account-codes.ts';
import { platformHosts } from './codes/fields/platform-hosts.ts';
import { republishCodes, republishRoutesOf } from './codes/republish.ts';
import { codesService } from './codes/service.ts';
import { deleteAccountTargetVersions } from './codes/target-versions.ts';
import { labelledCodes } from './codes/update/relabelled-codes.ts';
import type { CoreConfig } from './config.ts';
import type { Database } from './db/database.ts';
import type { Platform } from './domains/look-up.ts';
import { releaseAccountDomains } from './domains/release.ts';
import { republishDomains, republishHosts } from './domains/republish.ts';
import { domainsService } from './domains/service.ts';
import { eventsService } from './events/service.ts';
import { imagesService } from './images/service.ts';
import { requestWindow, workStreams } from './jobs/progress.ts';
import type { RunnableTask } from './jobs/worker.ts';
import type { Services } from './rpc/server-options.ts';
import type { ArchiveOptions } from './scans/archive/archive.ts';
import { deleteAccountScans } from './scans/delete-account-scans.ts';
import { scansService } from './scans/service.ts';
import { applyNext, TARGET_CHANGE_TASK } from './targets/changes/apply.ts';
import { deleteAccountTargetChanges } from './targets/changes/entities.ts';
import { targetsService } from './targets/service.ts';
import { deleteAccountLabels } from './taxonomy/delete-account-labels.ts';
import { taxonomyService } from './taxonomy/service.ts';
import { deleteAccountEndpoints } from './webhooks/endpoints/delete-endpoint.ts';
import type { SecretCipher } from './webhooks/secret-cipher.ts';
import { webhooksService } from './webhooks/service.ts';

/** What each module does when an account is closed. Labels are erased after the codes that reference them. */
export function accountCleanupFor(config: CoreConfig, database: Database): AccountCleanup {
  const { pool } = database;
  return createAccountCleanup(pool, {
    stop: [(id) => deleteAccountCodes(pool, config.PUBLIC_URL, id), (id) => releaseAccountDomains(database, id)],
    erase: [
      (id) => eraseAccountCodes(pool, id),
      (id) => deleteAccountTargetVersions(pool, id),
      (id) => deleteAccountTargetChanges(pool, id),
      (id) => deleteAccountBatches(database, id),
      (id) => deleteAccountLabels(pool, id),
      (id) => deleteAccountEndpoints(pool, id),
      (id) => deleteAccountIdempotencyKeys(pool, id),
      (id) => deleteAccountApiRequests(pool, id),
      (id) => deleteAccountMembers(database, id),
      // Last: it fails until every archive can be read.
      (id) => deleteAccountScans(pool, archiveFolder(config), id),
    ],
  });
}

/** What the worker finishes in the background. */
export function backgroundTasks({ orm }: Database, platformUrl: string): RunnableTask[] {
  return [
    { task: BATCH_TASK, advance: (id) => advance(orm, platformUrl, id) },
    { task: TARGET_CHANGE_TASK, advance: (id) => applyNext(orm, platformUrl, id) },
  ];
}

/** Dependencies of the services. */
interface Parts {
  readonly config: CoreConfig;
  readonly database: Database;
  readonly log: Log;
  readonly accountCleanup: AccountCleanup;
  readonly secretCipher: SecretCipher;
  readonly logger: Logger;
  /** Aborted when the process is asked to stop. */
  readonly stopping: AbortSignal;
}

/** The services of all modules. */
export function services({
  config,
  database,
  log,
  accountCleanup,
  secretCipher,
  logger,
  stopping,
}: Parts): (target: Services) => void {
  const { pool } = database;
  const platformUrl = config.PUBLIC_URL;
  const { byId, byName } = cursors(config.SECRET_KEY);
  const isPlatformHost = platformHosts(platformUrl, config.PLATFORM_ADDRESSES);
  const window = requestWindow({
    windowMs: config.BATCH_WINDOW_MS,
    connections: config.DATABASE_CONNECTIONS,
    logger,
    stopping,
  });
  const watch = workStreams(stopping);
  return (target) => {
    target.service(AdmissionService, admissionService(pool));
    target.service(CodesService, codesService({ database, platformUrl, isPlatformHost, cursors: byId }));
    target.service(
      BatchesService,
      batchesService({
        database,
        cursors: byId,
        platformUrl,
        isPlatformHost,
        window,
        watch,
      }),
    );
    target.service(
      TargetsService,
      targetsService({
        database,
        platformUrl,
        isPlatformHost,
        cursors: { byId, byName },
        window,
        watch,
      }),
    );
    target.service(TaxonomyService, taxonomyService({ database, cursors: byName, codes: labelledCodes }));
    target.service(AnalyticsService, analyticsService(database));
    target.service(ScansService, scansService({ database, log, archiveFolder: archiveFolder(config) }));
    target.service(
      EventsService,
      eventsService({ pool, log, republishRoutes: (keys) => republishRoutes(database, keys) }),
    );
    target.service(ImagesService, imagesService(pool, platformUrl));
    target.service(AccountsService, accountsService({ database, cursors: byId, accountCleanup }));
    target.service(
      WebhooksService,
      webhooksService({
        database,
        cursors: { byId, byName },
        secretCipher,
        allowPrivate: config.WEBHOOKS_ALLOW_PRIVATE,
      }),
    );
    target.service(DomainsService, domainsService({ database, platform: platformOf(config) }));
  };
}

/** Publishes the current routes of these keys of the routes topic; returns how many. */
async function republishRoutes(database: Database, keys: readonly string[]): Promise<number> {
  const codes = keys.flatMap((key) => nameInRouteKey('code', key) ?? []);
  const hosts = keys.flatMap((key) => nameInRouteKey('host', key) ?? []);
  const codeCount = codes.length > 0 ? await republishRoutesOf(database.pool, codes) : 0;
  const hostCount = hosts.length > 0 ? await republishHosts(database, hosts) : 0;
  return codeCount + hostCount;
}

/** Publishes the current routes of all codes and domains; returns how many. Rejects once `signal` is aborted. */
export async function republishAllRoutes(database: Database, signal: AbortSignal): Promise<number> {
  return (await republishDomains(database, 0, signal)) + (await republishCodes(database.pool, 0, signal));
}

/** Folder for files of archived scans. */
function archiveFolder({ DATA_DIR }: CoreConfig): string {
  return join(DATA_DIR, 'archive');
}

/** The months that are archived, and the place of the archives. */
export function archiveOptions(config: CoreConfig): ArchiveOptions {
  return { hotMonths: config.SCANS_HOT_MONTHS, to: config.SCANS_ARCHIVE, folder: archiveFolder(config) };
}

/** What custom domains must resolve to. */
export function platformOf({ PUBLIC_URL, PLATFORM_ADDRESSES, DNS_RESOLVERS }: CoreConfig): Platform {
  return { host: new URL(PUBLIC_URL).hostname, addresses: PLATFORM_ADDRESSES, resolvers: DNS_RESOLVERS };
}
