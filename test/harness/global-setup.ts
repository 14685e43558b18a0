import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import type { Services } from './services.ts';

declare module 'vitest' {
  interface ProvidedContext extends Services {}
}

/** Starts what the tests share; vitest calls what it gives back when they are done. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const process = fork(join(import.meta.dirname, 'services.ts'), {
    detached: true,
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const gone = once(process, 'exit');
  const started = once(process, 'message').then(([services]: Services[]) => services);
  const services = await Promise.race([started, gone.then(() => undefined)]);
  if (services === undefined) throw new Error('What the tests share could not be started; the reason is above.');
  project.provide('templateUrl', services.templateUrl);
  project.provide('gatewayUrl', services.gatewayUrl);
  project.provide('kafkaBrokers', services.kafkaBrokers);
  return async () => {
    process.disconnect();
    await gone;
  };
}
