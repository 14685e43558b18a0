import { join } from 'node:path';
import { Plan } from '../proto/gen/signpost/accounts/v1/accounts_pb.ts';
import { createAccount } from './create-account.ts';
import { LOOPBACK } from './free-port.ts';
import { readSecret, writeSecret } from './secret-file.ts';
import type { Settings } from './settings.ts';

/**
 * The API key of the local account, stored in `DATA_DIR/api-key`. The account is created on the first start, and again if
 * the stored key is no longer valid: it was rotated, or another Postgres is used. `serviceTokens`: comma-separated; any of
 * them is accepted by the core.
 */
export async function localKey(settings: Settings, serviceTokens: string): Promise<string> {
  const path = join(settings.dataDir, 'api-key');
  const stored = await readSecret(path);
  if (stored !== undefined && (await isValid(settings, stored))) return stored;
  const [serviceToken = ''] = serviceTokens.split(',');
  const account = { name: 'Local', plan: Plan.BUSINESS };
  const { apiKey } = await createAccount({ corePort: settings.corePort, serviceToken }, account);
  await writeSecret(path, apiKey);
  return apiKey;
}

async function isValid({ port }: Settings, key: string): Promise<boolean> {
  const url = `http://${LOOPBACK}:${port}/api/v1/folders`;
  const { status } = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
  return status !== 401;
}
