import { join } from 'node:path';
import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { AdmissionService } from '../proto/gen/signpost/access/v1/admission_pb.ts';
import { Plan } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { accountsOf, type LocalCore, localTransport } from './core.ts';
import { createAccount } from './create-account.ts';
import { forgetSample, requestSample } from './sample/request.ts';
import { readSecret, writeSecret } from './secret-file.ts';
import type { Settings } from './settings.ts';

/** The account of a local run. */
export interface LocalAccount {
  /** `acct_…`. Undefined if it can't be told: the key has used up a limit, and no start before has stored the id. */
  readonly id: string | undefined;
  /** Undefined if the stored key is no longer valid. */
  readonly apiKey: string | undefined;
}

/**
 * The account whose API key is stored in `DATA_DIR/api-key`, and its id in `DATA_DIR/account`. It is created on the
 * first start, and again with another Postgres, but not if its key was rotated. If it is the first account of the
 * installation, it gets sample data.
 */
export async function localAccount(
  { dataDir, sample }: Pick<Settings, 'dataDir' | 'sample'>,
  core: LocalCore,
): Promise<LocalAccount> {
  const [keyPath, idPath] = [join(dataDir, 'api-key'), join(dataDir, 'account')];
  const stored = await readSecret(keyPath);
  const existing = stored === undefined ? undefined : await accountOf(stored, core, idPath);
  if (existing) return existing;
  if (stored !== undefined) {
    const id = await readSecret(idPath);
    if (id !== undefined && (await exists(core, id))) return { id, apiKey: undefined };
    console.log(`The API key in ${keyPath} is not valid here, so a new account is created.`);
    // It was requested for another installation.
    await forgetSample(dataDir);
  }
  // First, so that it is not forgotten if this process dies before it has stored the key.
  if (sample && (await isEmpty(core))) await requestSample(dataDir);
  const { accountId: id, apiKey } = await createAccount(core, { name: 'Local', plan: Plan.BUSINESS });
  // Without its key, the id is never read: the next start creates another account.
  await writeSecret(idPath, id);
  await writeSecret(keyPath, apiKey);
  return { id, apiKey };
}

/** The account of a key, without metering the call; undefined if the key is invalid. */
async function accountOf(apiKey: string, core: LocalCore, idPath: string): Promise<LocalAccount | undefined> {
  const transport = localTransport(core, { authorization: `Bearer ${apiKey}` });
  const method = 'signpost.taxonomy.v1.TaxonomyService/ListFolders';
  try {
    const { accountId: id } = await createClient(AdmissionService, transport).authenticate({ method });
    if (id !== (await readSecret(idPath))) await writeSecret(idPath, id);
    return { id, apiKey };
  } catch (error) {
    const { code } = ConnectError.from(error);
    if (code === Code.Unauthenticated) return undefined;
    if (code !== Code.ResourceExhausted) throw error;
    // The key is valid, but it has used up a limit.
    return { id: await readSecret(idPath), apiKey };
  }
}

async function exists(core: LocalCore, id: string): Promise<boolean> {
  try {
    await accountsOf(core, id).getAccount({});
    return true;
  } catch (error) {
    if (ConnectError.from(error).code === Code.NotFound) return false;
    throw error;
  }
}

async function isEmpty(core: LocalCore): Promise<boolean> {
  const { total } = await accountsOf(core).listAccounts({ limit: 1 });
  return total === 0n;
}
