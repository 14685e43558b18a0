import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Child, startChild } from '../../local/child.ts';
import { freePort, LOOPBACK } from '../../local/free-port.ts';
import { afterFile } from '../../test/harness/after-file.ts';
import type { Signpost } from '../../test/harness/processes.ts';
import { Browser } from './browser.fixture.ts';

/** The dashboard's server, as a process. */
export interface Dashboard {
  readonly url: string;
  readonly secretKey: Buffer;
  /** Its complete output. */
  log(): Promise<string>;
  stop(signal?: NodeJS.Signals): Promise<void>;
  restart(): Promise<void>;
}

/** Starts the dashboard's server before a core; `env`: further variables. */
export async function startDashboard(
  signpost: Signpost,
  options: { port?: number; env?: Readonly<Record<string, string>> } = {},
): Promise<Dashboard> {
  const port = options.port ?? (await freePort());
  const url = `http://${LOOPBACK}:${port}`;
  const secretKey = randomBytes(32);
  const log = join(signpost.dataDir, `dashboard-${port}.log`);
  const start = () =>
    startChild({
      name: 'dashboard',
      program: 'dashboard/server/main.ts',
      log,
      env: {
        PATH: process.env.PATH,
        DASHBOARD_PORT: String(port),
        DASHBOARD_URL: url,
        PUBLIC_URL: signpost.url,
        CORE_PORT: String(signpost.corePort),
        SERVICE_TOKEN: signpost.serviceToken,
        SECRET_KEY: secretKey.toString('base64'),
        LOG_LEVEL: 'debug',
        ...options.env,
      },
    });
  let child: Child = await start();
  const stop = (signal?: NodeJS.Signals) => child.stop(signal);
  afterFile(() => stop());
  return {
    url,
    secretKey,
    log: () => readFile(log, 'utf8'),
    stop,
    async restart() {
      await stop();
      child = await start();
    },
  };
}

/** Signs a browser in with the token of a link. */
export async function signInWithLink({ url }: Dashboard, token: string): Promise<Browser> {
  const browser = new Browser();
  const response = await redeem(browser, url, token);
  if (response.status !== 303) throw new Error(`signing in answered ${response.status}`);
  return browser;
}

/** Submits the form of the page that a sign-in link opens, as its script fills it. */
export function redeem(browser: Browser, url: string, token: string, headers: Record<string, string> = {}) {
  return browser.request(`${url}/sign-in/link`, { method: 'POST', body: new URLSearchParams({ token }), headers });
}
