import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { isAppOutdated } from '../../local/build-app.ts';
import type { Services } from './services.ts';

declare module 'vitest' {
  interface ProvidedContext extends Services {}
}

/**
 * Builds the dashboard's pages and starts the services shared by all tests; vitest calls the returned function after
 * the tests.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (await isAppOutdated()) execFileSync('npm', ['run', '--silent', 'build:dashboard'], { stdio: 'inherit' });
  const process = fork(join(import.meta.dirname, 'services.ts'), {
    detached: true,
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const exited = once(process, 'exit');
  const started = once(process, 'message').then(([services]: Services[]) => services);
  const services = await Promise.race([started, exited.then(() => undefined)]);
  if (services === undefined)
    throw new Error('The services shared by the tests could not be started; the reason is above.');
  project.provide('templateUrl', services.templateUrl);
  project.provide('gatewayUrl', services.gatewayUrl);
  project.provide('kafkaBrokers', services.kafkaBrokers);
  project.provide('sharedSignpost', services.sharedSignpost);
  return async () => {
    process.disconnect();
    await exited;
  };
}
