import { readFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { METADATA } from '../common/contract/metadata.ts';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { configured, readConfiguredCa, readConfiguredFile } from '../common/runtime/read-configured-file.ts';
import { optionalText, port, readVariables, textMatching, type Values } from '../common/runtime/variables.ts';
import type { CoreClients } from './clients.ts';

/** Invalid usage of a command that its option definitions can't detect. */
export class UsageError extends OperatorError {}

const VARIABLES = {
  CORE_HOST: { type: textMatching('a host', /^[\w.-]+$|^\[[\da-f:]+\]$/i, '127.0.0.1') },
  CORE_PORT: { type: port(8081) },
  SERVICE_TOKEN: { type: optionalText('a token') },
  CORE_CA: { type: optionalText('a PEM file') },
  CORE_CERT: { type: optionalText('a PEM file') },
  CORE_KEY: { type: optionalText('a PEM file') },
};

/**
 * Creates clients of a core (`CORE_HOST`, `CORE_PORT`, by default on this machine) with `SERVICE_TOKEN`, or the one
 * that a local run stores in `DATA_DIR`, or over TLS (`CORE_CA`) with a certificate (`CORE_CERT`, `CORE_KEY`).
 * `account`: the account to act for, `acct_…`. The protocol's packages are loaded only here: `--help` does not need
 * them.
 */
export async function connectCore(env: NodeJS.ProcessEnv, account?: string): Promise<CoreClients> {
  const values = readVariables(VARIABLES, env);
  // Without them the call would be made without the certificate, and the error would be about something else.
  if (values.CORE_CERT && !(values.CORE_KEY && values.CORE_CA))
    throw new OperatorError('CORE_CERT requires CORE_KEY and CORE_CA.');
  if (values.CORE_KEY && !values.CORE_CERT) throw new OperatorError('CORE_KEY requires CORE_CERT.');
  const token =
    values.SERVICE_TOKEN?.split(',')[0] ||
    (values.CORE_CERT ? undefined : await storedToken(configured(env, 'DATA_DIR')));
  // Node quotes an invalid header in its error: `SERVICE_TOKEN_FILE` may name a file of other secrets.
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
    throw new OperatorError(
      'The service token must consist of visible ASCII characters; SERVICE_TOKEN, or the file that it is read from, does not.',
    );
  }
  const tls = values.CORE_CA ? clientTls(values) : undefined;
  const { createClients } = await import('./clients.ts');
  return createClients({
    baseUrl: `${tls ? 'https' : 'http'}://${values.CORE_HOST}:${values.CORE_PORT}`,
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      [METADATA.actor]: `${user()} at the command line`,
      ...(account === undefined ? {} : { [METADATA.account]: account }),
    },
    ...(tls ? { tls } : {}),
  });
}

function clientTls({ CORE_CA, CORE_CERT, CORE_KEY }: Values<typeof VARIABLES>): Record<string, Buffer> {
  return {
    ...(CORE_CA && { ca: readConfiguredCa('CORE_CA', CORE_CA) }),
    ...(CORE_CERT && { cert: readConfiguredFile('CORE_CERT', CORE_CERT) }),
    ...(CORE_KEY && { key: readConfiguredFile('CORE_KEY', CORE_KEY) }),
  };
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
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const problem = code === 'ENOENT' ? `no ${path}` : `${path} can't be read: ${code}`;
    throw new OperatorError(
      `No service token: set SERVICE_TOKEN, or DATA_DIR to the folder of a local run (${problem}).`,
      { cause: error },
    );
  }
}
