import { relative, resolve } from 'node:path';
import type { LocalCore } from './core.ts';
import { session } from './session.ts';
import type { Settings } from './settings.ts';
import { createSignInLink, OWNER } from './sign-in-link.ts';

/**
 * The message of `npm start` once the API is ready: addresses, the key, and a session to copy and paste. `apiKey`:
 * undefined if the stored one is no longer valid.
 */
export function welcome(settings: Settings, apiKey: string | undefined): string {
  const { port, corePort, grpcPort, dataDir } = settings;
  return `
Signpost is running; Ctrl-C stops it.

  REST API and scans   http://localhost:${port}
  API reference        http://localhost:${port}/docs
  core, Connect        http://localhost:${corePort}
  core, gRPC           localhost:${grpcPort}
  logs                 ${relative(process.cwd(), dataDir)}/logs
  API key              ${apiKey ?? 'no longer valid: put the new one into the file api-key in DATA_DIR'}
${apiKey === undefined ? '' : `\n${session(`http://localhost:${port}`, apiKey)}`}`;
}

/** The message once the dashboard is ready at `url`, with a new sign-in link. `account`: `acct_…`. */
export async function signInText(
  { dataDir }: Settings,
  core: LocalCore,
  account: string | undefined,
  url: URL,
): Promise<string> {
  const variables = [
    dataDir !== resolve('.signpost') && `DATA_DIR=${relative(process.cwd(), dataDir)} `,
    core.corePort !== 8081 && `CORE_PORT=${core.corePort} `,
    url.href !== 'http://localhost:8090/' && `DASHBOARD_URL=${url.origin} `,
  ];
  const command = `${variables.filter(Boolean).join('')}npm run signpost -- dashboard link --account ${account ?? 'acct_…'} --email ${OWNER}`;
  if (account === undefined) return `The dashboard is at ${url}. This prints a link to sign in:\n\n  ${command}\n`;
  return `Open the dashboard with this link, which works once and for 15 minutes:

  ${await createSignInLink(core, account, url)}

This prints another one:

  ${command}
`;
}
