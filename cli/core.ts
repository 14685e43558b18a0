import { readFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { readConfiguredFile } from '../common/runtime/read-configured-file.ts';
import { configured } from '../common/runtime/variables.ts';
import type { Core } from './clients.ts';

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
 * account to act for, `acct_…`. The protocol's packages are loaded only here: `--help` does not need them.
 */
export async function connectCore(env: NodeJS.ProcessEnv, account?: string): Promise<Core> {
  const hasCertificate = Boolean(env.CORE_CERT && env.CORE_KEY);
  const token =
    configured(env, 'SERVICE_TOKEN')?.split(',')[0] || (hasCertificate ? undefined : await storedToken(env.DATA_DIR));
  const tls = env.CORE_CA ? clientTls(env) : undefined;
  const { createClients } = await import('./clients.ts');
  return createClients({
    baseUrl: `${tls ? 'https' : 'http'}://${env.CORE_HOST || '127.0.0.1'}:${env.CORE_PORT || 8081}`,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      'signpost-actor': `${user()} at the command line`,
      ...(account === undefined ? {} : { 'signpost-account': account }),
    },
    ...(tls ? { tls } : {}),
  });
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
