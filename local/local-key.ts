import { join } from 'node:path';
import { Plan } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { createAccount } from './create-account.ts';
import { LOOPBACK } from './free-port.ts';
import { keepSecret, readSecret } from './kept-secret.ts';
import type { Settings } from './settings.ts';

/**
 * The API key of the local account, kept in `DATA_DIR/api-key`. The account is created on the first start, and again
 * when the database knows the kept key no more: somebody has rotated it, or has started over with another Postgres.
 * `serviceTokens`: comma-separated, any of which opens the core.
 */
export async function localKey(settings: Settings, serviceTokens: string): Promise<string> {
  const path = join(settings.dataDir, 'api-key');
  const kept = await readSecret(path);
  if (kept !== undefined && (await isKnown(settings, kept))) return kept;
  const [serviceToken = ''] = serviceTokens.split(',');
  const account = { name: 'Local', plan: Plan.BUSINESS };
  const { apiKey } = await createAccount({ corePort: settings.corePort, serviceToken }, account);
  await keepSecret(path, apiKey);
  return apiKey;
}

async function isKnown({ port }: Settings, key: string): Promise<boolean> {
  const url = `http://${LOOPBACK}:${port}/api/v1/folders`;
  const { status } = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
  return status !== 401;
}
