import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Client, createClient, type Interceptor } from '@connectrpc/connect';
import { createConnectTransport } from '@connectrpc/connect-node';
import { AccountsService } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { BatchesService } from '../proto/gen/signpost/batches/v1/batches_pb.ts';
import { DomainsService } from '../proto/gen/signpost/domains/v1/domains_pb.ts';
import { ScansService } from '../proto/gen/signpost/scans/v1/scans_pb.ts';

/** The core's services as the command line calls them. */
export interface Core {
  readonly accounts: Client<typeof AccountsService>;
  readonly batches: Client<typeof BatchesService>;
  readonly domains: Client<typeof DomainsService>;
  readonly scans: Client<typeof ScansService>;
}

/** A problem of the person at the keyboard, as a sentence. */
export class Sentence extends Error {}

/**
 * Connects to the core on this machine (`CORE_PORT`) with `SERVICE_TOKEN`, or with the one that a local run keeps in
 * `DATA_DIR`. `account`: the account to act for, `acct_…`.
 */
export async function connectCore(env: NodeJS.ProcessEnv, account?: string): Promise<Core> {
  const token = env.SERVICE_TOKEN?.split(',')[0] || (await keptToken(env.DATA_DIR || '.signpost'));
  const identify: Interceptor = (next) => (request) => {
    request.header.set('authorization', `Bearer ${token}`);
    request.header.set('signpost-actor', 'command line');
    if (account !== undefined) request.header.set('signpost-account', account);
    return next(request);
  };
  const transport = createConnectTransport({
    baseUrl: `http://127.0.0.1:${env.CORE_PORT || 8081}`,
    httpVersion: '1.1',
    interceptors: [identify],
  });
  return {
    accounts: createClient(AccountsService, transport),
    batches: createClient(BatchesService, transport),
    domains: createClient(DomainsService, transport),
    scans: createClient(ScansService, transport),
  };
}

async function keptToken(dataDir: string): Promise<string> {
  const path = join(dataDir, 'service-token');
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch {
    throw new Sentence(`No service token: set SERVICE_TOKEN, or DATA_DIR to the folder of a local run (no ${path}).`);
  }
}
