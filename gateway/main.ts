import { type ChildProcess, type ForkOptions, fork, type StdioOptions } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { accessSync, constants, mkdirSync, renameSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readKafkaSecurity } from '../common/log/kafka-variables.ts';
import { exitOnFatalErrors } from '../common/runtime/fatal-errors.ts';
import { logWarnings } from '../common/runtime/log-warnings.ts';
import { openLogger } from '../common/runtime/logger.ts';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { exitWithParent, stopRequest } from '../common/runtime/stop-request.ts';
import { readVariables } from '../common/runtime/variables.ts';
import { serveObserved } from '../common/telemetry/serve.ts';
import { startTelemetry } from '../common/telemetry/start.ts';
import { GATEWAY_VARIABLES, type GatewayConfig } from './config.ts';
import { measureProcesses } from './metrics.ts';
import { collectMetrics } from './process/collect-metrics.ts';
import { lockDataDir } from './process/data-dir-lock.ts';
import { inheritedPort } from './process/inherited-sockets.ts';
import {
  type CarrierStatus,
  type MessageFromMain,
  type MessageToMain,
  STATUS_MS,
  type WorkerStatus,
} from './process/messages.ts';
import { bindPort } from './process/port.ts';
import { killOrphanedProcesses, processLock } from './process/process-lock.ts';
import { type SupervisedProcess, superviseProcess } from './process/supervised-process.ts';
import { tableIsDamaged } from './redirect/routes/damage.ts';
import { openOrphanedSpools } from './redirect/spool/orphaned-spools.ts';
import { SPOOLS } from './redirect/spool/segments.ts';

/**
 * The semi-space size of workers: garbage of scans is short-lived. With Node's default of 16 MiB (times three) a worker
 * takes 45 MiB more memory and answers scans no faster than with 4. Garbage of API requests lives longer: in one run a read
 * took a worker 199 µs of CPU with 4 MiB, 187 with 8 and 168 with 16. But with 8, a worker with 1,000,000 codes took 359
 * instead of 348 MiB.
 */
const SEMI_SPACE_MIB = 4;
/**
 * Objects that survive the start of a program make V8 allocate later objects from the same site in the old generation at
 * once, those of scans too. Collecting the old generation stops a worker for 10 to 20 ms; with this option it grew by
 * 2.5 MB in 9 s of 30,000 scans a second, and without it by 6 MB.
 */
const NO_PRETENURING = '--no-allocation-site-pretenuring';

/** How long workers may take to close their port, and how often that is checked, in ms. */
const CLOSE_MS = 1_000;
const LOOK_MS = 5;

/**
 * Starts the carrier and the workers, restarts them when they die, and forwards their messages; does nothing that could
 * fail. Workers end first, so that the carrier ships their last scans.
 */
async function main(config: GatewayConfig): Promise<void> {
  const logger = openLogger(config.LOG_LEVEL, { process: 'gateway' });
  exitOnFatalErrors(logger);
  exitWithParent();
  logWarnings(logger);
  const telemetry = await startTelemetry({ config, service: 'signpost-gateway', part: 'main', logger });
  // Only the carrier uses it, but a mistake in it fails the start here, with one sentence.
  readKafkaSecurity(config);
  await using running = new AsyncDisposableStack();
  running.defer(() => logger.info('the gateway has stopped'));
  running.defer(() => telemetry.stop());
  expectWritable(config.DATA_DIR);
  if (config.COUNTRY_DATABASE !== undefined) expectReadable(config.COUNTRY_DATABASE);
  running.use(lockDataDir(config.DATA_DIR, logger));
  const table = join(config.DATA_DIR, 'routes');
  const spools = openOrphanedSpools(join(config.DATA_DIR, SPOOLS), logger);
  // If a leftover process may still be writing, its spool is shipped, and sealed by a later start.
  if (await killOrphanedProcesses(config.DATA_DIR, logger)) spools.addAll();
  const count = config.GATEWAY_WORKERS ?? availableParallelism();
  const port =
    inheritedPort(config.PORT, process.env) ?? (await bindPort(config.LISTEN_HOST, config.PORT, count, logger));
  const workers: SupervisedProcess[] = [];
  const workerStatuses = new Map<number, WorkerStatus>();
  const closed = new Set<number>();
  const serving = new Set<number>();
  let isReady = false;
  let carrierStatus: CarrierStatus | undefined;
  let carrier: SupervisedProcess | undefined;
  const processes = () =>
    new Map([
      ...workers.map((worker, number) => [`worker ${number}`, worker] as const),
      ...(carrier ? [['carrier', carrier] as const] : []),
    ]);
  const collector = collectMetrics(processes);
  const measured = measureProcesses(telemetry, collector);
  running.use(
    await serveObserved({
      host: config.LISTEN_HOST,
      port: config.METRICS_PORT,
      collect: measured.collect,
      async unready() {
        if (!isReady) return 'The gateway is starting or stopping.';
        if (serving.size < count) return 'Not all workers are running.';
        const failing = [...workerStatuses.values()].find(({ spool }) => spool.failing !== undefined)?.spool.failing;
        return failing && `Scans can't be written to disk: ${failing}.`;
      },
      logger,
    }),
  );

  /** Deletes a damaged route table: the carrier rebuilds it from its topic. */
  async function repair(): Promise<void> {
    if (!(await tableIsDamaged(table))) return;
    // Moved first, because a disk that can't be written must not stop the processes that still run.
    const damaged = `${table}.damaged`;
    rmSync(damaged, { recursive: true, force: true });
    renameSync(table, damaged);
    logger.error('the route table is damaged; it is rebuilt from its topic');
    await Promise.all([...workers, ...(carrier ? [carrier] : [])].map((each) => each.kill()));
    rmSync(damaged, { recursive: true, force: true });
  }

  let repaired = repair();
  await repaired;
  /** Waits for a repair that is under way. Rejects if the process's own fails: only that process waits for another one. */
  function repairAfter(crashed: boolean): Promise<void> {
    const done = crashed ? repaired.then(repair) : repaired;
    repaired = done.catch(() => undefined);
    return done;
  }

  function sendToWorkers(message: MessageFromMain): void {
    for (const worker of workers) worker.send(message);
  }
  /** What workers were asked to do on stop; those that are restarted meanwhile are asked too. */
  const asked: MessageFromMain[] = [];
  function askWorkers(message: MessageFromMain): void {
    asked.push(message);
    sendToWorkers(message);
  }
  let isStateSent = true;
  function sendState(): void {
    isStateSent = true;
    sendToWorkers({ type: 'state', state: { carrier: carrierStatus, workers: [...workerStatuses.values()] } });
  }

  /** Starts a program of the gateway. Its lock file is removed when it exits. */
  function startProgram(name: string, args: readonly string[], options: ForkOptions): ChildProcess {
    const child = fork(join(import.meta.dirname, name), args, { serialization: 'advanced', ...options });
    child.once('exit', () => {
      try {
        if (child.pid !== undefined) rmSync(processLock(config.DATA_DIR, child.pid), { force: true });
      } catch (error) {
        logger.warn({ err: error }, 'the lock file of an ended process can’t be removed');
      }
    });
    return child;
  }

  carrier = superviseProcess({
    name: 'carrier',
    logger,
    start: () => startProgram('carrier.ts', [], {}),
    onMessage(message) {
      if (message.type === 'taken') workers[message.worker]?.send({ type: 'taken', offer: message.offer });
      if (message.type === 'metrics') collector.receive(message.collection, message.scopes);
      if (message.type !== 'status' || !('carrier' in message)) return;
      carrierStatus = message.carrier;
      sendState();
    },
    onExit() {
      measured.restarted('carrier');
      carrierStatus = undefined;
      sendState();
    },
    beforeRestart: repairAfter,
  });
  running.defer(() => carrier.stop());

  const execArgv = [`--max-semi-space-size=${SEMI_SPACE_MIB}`, NO_PRETENURING, ...process.execArgv];
  for (let number = 0; number < count; number++) {
    const stdio: StdioOptions = ['inherit', 'inherit', 'inherit', 'ipc', port.descriptor(number)];
    workers.push(
      superviseProcess({
        name: `worker ${number}`,
        logger,
        start() {
          const spool = `${number}-${randomUUID()}`;
          const worker = startProgram('worker.ts', [String(number), spool], { execArgv, stdio });
          worker.once('exit', () => spools.add(spool));
          if (worker.pid !== undefined) for (const each of asked) worker.send(each, () => undefined);
          return worker;
        },
        onMessage(message: MessageToMain) {
          if (message.type === 'metrics') collector.receive(message.collection, message.scopes);
          if (message.type === 'held') carrier.send({ ...message, worker: number });
          if (message.type === 'status' && 'worker' in message) workerStatuses.set(number, message.worker);
          // A worker that has just started knows no state yet.
          if (message.type === 'status' || message.type === 'ready') isStateSent = false;
          if (message.type === 'ready') serving.add(number);
          if (message.type === 'closed') closed.add(number);
        },
        onExit() {
          measured.restarted(`worker ${number}`);
          workerStatuses.delete(number);
          serving.delete(number);
        },
        beforeRestart: repairAfter,
      }),
    );
  }
  running.defer(async () => {
    // Clients reconnect as soon as their connection is closed, so no worker closes connections before all have closed the
    // port. Only the workers hold it from here on, so it is closed once they have accepted what is queued.
    port.close();
    askWorkers({ type: 'close', isInherited: port.isInherited });
    const end = performance.now() + CLOSE_MS;
    while (closed.size < workers.length && performance.now() < end) await sleep(LOOK_MS);
    await Promise.all(workers.map((worker) => worker.stop()));
  });

  await Promise.all([...workers.map(({ ready }) => ready), carrier.ready]);
  const reporting = setInterval(() => {
    if (!isStateSent) sendState();
    spools.removeShipped();
  }, STATUS_MS);
  running.defer(() => clearInterval(reporting));
  // Registered first, because a stop may be requested as soon as readiness is reported.
  const stopRequested = stopRequest();
  isReady = true;
  logger.info({ port: port.number, workers: workers.length }, 'the gateway is ready');
  process.send?.({ type: 'ready', port: port.number });
  const reason = await stopRequested;
  isReady = false;
  logger.info({ reason }, 'the gateway is stopping');
  if (config.DRAIN_SECONDS > 0) {
    askWorkers({ type: 'drain' });
    await sleep(config.DRAIN_SECONDS * 1_000);
  }
}

function expectWritable(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const problem = code === 'EEXIST' || code === 'ENOTDIR' ? 'is not a folder' : "can't be written to";
    throw new OperatorError(`DATA_DIR ${folder} ${problem} (${code}).`);
  }
}

function expectReadable(database: string): void {
  try {
    accessSync(database, constants.R_OK);
  } catch (error) {
    throw new OperatorError(`COUNTRY_DATABASE ${database} can't be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

try {
  await main(readVariables(GATEWAY_VARIABLES, process.env));
} catch (error) {
  if (error instanceof OperatorError) console.error(error.message);
  else openLogger('fatal', { process: 'gateway' }).fatal({ err: error }, 'the gateway exits after an unexpected error');
  process.exitCode = 1;
}
process.exit();
