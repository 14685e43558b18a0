import { join, relative, resolve } from 'node:path';
import type { LocalCore } from './core.ts';
import { LOOPBACK } from './free-port.ts';
import { session } from './session.ts';
import type { Settings } from './settings.ts';
import { createSignInLink, OWNER } from './sign-in-link.ts';

/**
 * The message of `npm start` once the API is ready: addresses, the key, and a session to copy and paste. `apiKey`:
 * undefined if the stored one is no longer valid.
 */
export function welcome(settings: Settings, apiKey: string | undefined): string {
  const { host, port, corePort, grpcPort, dataDir } = settings;
  const url = `http://${host}:${port}`;
  return `
Signpost is running; Ctrl-C stops it.

  REST API and scans   ${url}
  API reference        ${url}/docs
  core, Connect        http://localhost:${corePort}
  core, gRPC           localhost:${grpcPort}
  logs                 ${relative(process.cwd(), join(dataDir, 'logs'))}
  API key              ${apiKey ?? 'no longer valid: put the new one into the file api-key in DATA_DIR'}
${apiKey === undefined ? '' : `\n${session(url, apiKey)}`}`;
}

/** The message once the dashboard is ready, with a new sign-in link. `account`: `acct_…`; `given`: the environment. */
export async function signInText(
  { dataDir, host, dashboardPort, dashboardUrl }: Settings,
  core: LocalCore,
  account: string | undefined,
  given: NodeJS.ProcessEnv,
): Promise<string> {
  if (dashboardUrl === undefined)
    return `The dashboard listens on ${host}:${dashboardPort}, where it requires https: put a proxy before it, and set DASHBOARD_URL to its address.\n`;
  const url = new URL(dashboardUrl);
  const variables = [
    dataDir !== resolve('.signpost') && `DATA_DIR=${quoted(relative(process.cwd(), dataDir) || '.')} `,
    // In the same shell it would get the token.
    given.CORE_HOST && `CORE_HOST=${LOOPBACK} `,
    ...['CORE_CA', 'CORE_CERT', 'CORE_KEY'].map((name) => given[name] && `${name}= `),
    core.corePort !== 8081 && `CORE_PORT=${core.corePort} `,
    url.href !== 'http://localhost:8090/' && `DASHBOARD_URL=${url.origin} `,
  ];
  const command = `${variables.filter(Boolean).join('')}npm run signpost -- dashboard link --account ${account ?? 'acct_…'} --email ${OWNER}`;
  const token = given.SERVICE_TOKEN ? ' (with the SERVICE_TOKEN of this run)' : '';
  if (account === undefined)
    return `The dashboard is at ${url}. This prints a link to sign in${token}:\n\n  ${command}\n`;
  return `Open the dashboard with this link, which works once and for 15 minutes:

  ${await createSignInLink(core, account, url)}

This prints another one${token}:

  ${command}
`;
}

/** A value as one word of a shell. */
function quoted(value: string): string {
  return /^[\w./-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}
