import { join } from 'node:path';
import { ConnectError } from '@connectrpc/connect';
import { reportFatalError } from '../common/runtime/fatal-errors.ts';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { withoutFiles } from '../common/runtime/variables.ts';
import { DASHBOARD_VARIABLES } from '../dashboard/server/config.ts';
import { GATEWAY_VARIABLES } from '../gateway/config.ts';
import { CORE_VARIABLES } from '../src/config.ts';
import { localAccount } from './account.ts';
import { buildApp } from './build-app.ts';
import { type Child, type ChildOptions, startChild } from './child.ts';
import { lockDataDir } from './data-dir.ts';
import { startDatabase } from './database.ts';
import { environmentsOf } from './environments.ts';
import { isFree, LOOPBACK } from './free-port.ts';
import { type Interruption, listenForInterruption } from './interruption.ts';
import { addSample } from './sample/add.ts';
import { readOrCreateSecret } from './secret-file.ts';
import { readSettings, type Settings } from './settings.ts';
import { signInText, welcome } from './welcome.ts';

/**
 * `npm start`: Postgres, a core that answers calls, one for background work, a gateway and the dashboard on this
 * machine, each a separate process as in production, and stopped in reverse order. Processes that die are not
 * restarted: supervisors do that in production, and here it would hide the reason. Rejects with an `OperatorError`, or
 * with the reason of `interruption.stop`; by then everything has stopped. `given`: the environment, with all values in
 * it.
 */
async function run(given: NodeJS.ProcessEnv, settings: Settings, interruption: Interruption): Promise<void> {
  const { dataDir, dashboardPort } = settings;
  const { stop, force } = interruption;
  const ending = new AbortController();
  const signal = AbortSignal.any([stop, ending.signal]);
  await using running = new AsyncDisposableStack();
  using _ = { [Symbol.dispose]: () => ending.abort() };
  running.use(lockDataDir(dataDir));
  await expectFreePorts(settings);
  // The API does not wait for the pages.
  const built = dashboardPort === undefined ? Promise.resolve() : buildApp(dataDir, signal);
  running.defer(() => built);
  const database = await startDatabase(settings);
  running.defer(() => database.stop());
  const serviceToken = given.SERVICE_TOKEN || (await readOrCreateSecret(join(dataDir, 'service-token')));
  const secretKey = given.SECRET_KEY || (await readOrCreateSecret(join(dataDir, 'secret-key')));
  const environments = environmentsOf(given, settings, database, { serviceToken, secretKey });

  const start = (options: Omit<ChildOptions, 'log'>): Promise<Child> => {
    const child = startChild({ ...options, log: join(dataDir, 'logs', `${options.name}.log`) }, signal);
    running.defer(() => child.then((started) => stopChild(started, force)).catch(() => undefined));
    return child;
  };
  const core = await start({ name: 'core', program: 'src/main.ts', env: environments.rpc });
  const others = await Promise.allSettled([
    start({ name: 'worker', program: 'src/main.ts', env: environments.worker }),
    start({ name: 'gateway', program: 'gateway/main.ts', env: environments.gateway }),
  ]);
  const children = [core, ...others.map(started)];
  // Any of several tokens is accepted by the core.
  const [token = ''] = serviceToken.split(',');
  const localCore = { corePort: settings.corePort, serviceToken: token, signal: stop };
  const account = await localAccount(settings, localCore).catch((error) => {
    stop.throwIfAborted();
    throw error;
  });
  stop.throwIfAborted();
  console.log(welcome(settings, account.apiKey));
  if (settings.sample) {
    const sample = addSample({ dataDir, account: account.id, env: environments.core, signal }).catch(console.error);
    running.defer(() => sample);
  }

  /** Starts the dashboard once its pages are built, and waits for its end. */
  const runDashboard = async (port: number): Promise<string> => {
    await built;
    signal.throwIfAborted();
    const { ended } = await start({
      name: 'dashboard',
      program: 'dashboard/server/main.ts',
      env: environments.dashboard(port),
    });
    console.log(await signInText(settings, localCore, account.id, given));
    return ended;
  };
  const interrupted = new Promise<void>((resolve) => {
    if (stop.aborted) resolve();
    stop.addEventListener('abort', () => resolve(), { once: true });
  });
  const ends = [interrupted, database.ended(), ...children.map(({ ended }) => ended)];
  const failure = await Promise.race(dashboardPort === undefined ? ends : [...ends, runDashboard(dashboardPort)]);
  if (failure !== undefined) throw new OperatorError(failure);
}

/** The started child; throws the reason if it could not be started. */
function started(child: PromiseSettledResult<Child>): Child {
  if (child.status === 'rejected') throw child.reason;
  return child.value;
}

async function expectFreePorts(settings: Settings): Promise<void> {
  const { port, corePort, grpcPort, dashboardPort, listenHost } = settings;
  if (!(await isFree(0, listenHost))) throw new OperatorError('LISTEN_HOST is not an address of this machine.');
  const ports = [
    ['PORT', port, listenHost],
    ['CORE_PORT', corePort, LOOPBACK],
    ['GRPC_PORT', grpcPort, LOOPBACK],
    ['DASHBOARD_PORT', dashboardPort, listenHost],
  ] as const;
  for (const [name, wanted, host] of ports) {
    if (wanted !== undefined && !(await isFree(wanted, host))) {
      throw new OperatorError(`Port ${wanted} is in use or not allowed: set ${name} to another one.`);
    }
  }
}

/** The sentence for a call of a core that failed; cores log the reason. */
function callSentence(error: unknown): string | undefined {
  return error instanceof ConnectError ? `A call of the core failed: ${error.message}` : undefined;
}

async function stopChild(child: Child, force: AbortSignal): Promise<void> {
  const kill = () => void child.stop('SIGKILL');
  force.addEventListener('abort', kill);
  await child.stop(force.aborted ? 'SIGKILL' : 'SIGTERM');
  force.removeEventListener('abort', kill);
}

process.on('uncaughtException', (error) => {
  console.error('Signpost exits after an unexpected error.', error);
  process.exit(1);
});
const interruption = listenForInterruption();
try {
  const env = withoutFiles(
    process.env,
    Object.keys({ ...CORE_VARIABLES, ...GATEWAY_VARIABLES, ...DASHBOARD_VARIABLES }),
  );
  await run(env, readSettings(env), interruption);
} catch (error) {
  const isRequested = interruption.stop.aborted && error === interruption.stop.reason;
  if (!isRequested) reportFatalError(error, { sentenceOf: callSentence });
}
process.exit(interruption.force.aborted ? 130 : process.exitCode);
