import { readFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { type Client, createClient, type Interceptor } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { readConfiguredFile } from '../common/runtime/read-configured-file.ts';
import { AccountsService } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { BatchesService } from '../proto/gen/signpost/batches/v1/batches_pb.ts';
import { CodesService } from '../proto/gen/signpost/codes/v1/codes_pb.ts';
import { DomainsService } from '../proto/gen/signpost/domains/v1/domains_pb.ts';
import { EventsService } from '../proto/gen/signpost/events/v1/events_pb.ts';
import { ScansService } from '../proto/gen/signpost/scans/v1/scans_pb.ts';
import { TaxonomyService } from '../proto/gen/signpost/taxonomy/v1/taxonomy_pb.ts';
import { WebhooksService } from '../proto/gen/signpost/webhooks/v1/webhooks_pb.ts';

/** Clients of the core's services. */
export interface Core {
  readonly accounts: Client<typeof AccountsService>;
  readonly batches: Client<typeof BatchesService>;
  readonly codes: Client<typeof CodesService>;
  readonly domains: Client<typeof DomainsService>;
  readonly events: Client<typeof EventsService>;
  readonly scans: Client<typeof ScansService>;
  readonly taxonomy: Client<typeof TaxonomyService>;
  readonly webhooks: Client<typeof WebhooksService>;
}

/** Invalid usage of a command that its option definitions can't detect. */
export class UsageError extends OperatorError {}

/** Returns a field of a response that the core always sets. */
export function required<Part>(part: Part | undefined): Part {
  if (part === undefined) throw new Error('a field is missing in the response of the core');
  return part;
}

/**
 * Creates clients of a core (`CORE_HOST`, `CORE_PORT`, by default on this machine) with `SERVICE_TOKEN`, or the one that a
 * local run stores in `DATA_DIR`, or over TLS (`CORE_CA`) with a certificate (`CORE_CERT`, `CORE_KEY`). `account`: the
 * account to act for, `acct_…`.
 */
export async function connectCore(env: NodeJS.ProcessEnv, account?: string): Promise<Core> {
  const hasCertificate = Boolean(env.CORE_CERT && env.CORE_KEY);
  const token = env.SERVICE_TOKEN?.split(',')[0] || (hasCertificate ? undefined : await storedToken(env.DATA_DIR));
  const identify: Interceptor = (next) => (request) => {
    if (token !== undefined) request.header.set('authorization', `Bearer ${token}`);
    request.header.set('signpost-actor', `${user()} at the command line`);
    if (account !== undefined) request.header.set('signpost-account', account);
    return next(request);
  };
  const tls = env.CORE_CA ? clientTls(env) : undefined;
  const transport = createConnectTransport({
    baseUrl: `${tls ? 'https' : 'http'}://${env.CORE_HOST || '127.0.0.1'}:${env.CORE_PORT || 8081}`,
    httpVersion: '1.1',
    interceptors: [identify],
    ...(tls ? { nodeOptions: tls } : {}),
  });
  return {
    accounts: createClient(AccountsService, transport),
    batches: createClient(BatchesService, transport),
    codes: createClient(CodesService, transport),
    domains: createClient(DomainsService, transport),
    events: createClient(EventsService, transport),
    scans: createClient(ScansService, transport),
    taxonomy: createClient(TaxonomyService, transport),
    webhooks: createClient(WebhooksService, transport),
  };
}

function clientTls(env: NodeJS.ProcessEnv): Record<string, Buffer> {
  const files = Object.entries({ ca: 'CORE_CA', cert: 'CORE_CERT', key: 'CORE_KEY' });
  return Object.fromEntries(
    files.flatMap(([option, name]) => {
      const path = env[name];
      return path ? [[option, readConfiguredFile(name, path)]] : [];
    }),
  );
}

/** The user name for the audit log, as visible ASCII for metadata. */
function user(): string {
  try {
    return userInfo().username.replace(/[^\x21-\x7e]/g, '?');
  } catch {
    // A container may run as a user without a name.
    return 'somebody';
  }
}

async function storedToken(dataDir: string | undefined): Promise<string> {
  const path = join(dataDir || '.signpost', 'service-token');
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch {
    throw new OperatorError(
      `No service token: set SERVICE_TOKEN, or DATA_DIR to the folder of a local run (no ${path}).`,
    );
  }
}
