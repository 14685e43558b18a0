import { type ChildProcess, type ForkOptions, fork, type StdioOptions } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { accessSync, constants, mkdirSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readKafkaSecurity } from '../common/log/kafka-variables.ts';
import { exitOnFatalErrors } from '../common/runtime/fatal-errors.ts';
import { openLogger } from '../common/runtime/logger.ts';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { stopRequest } from '../common/runtime/stop-request.ts';
import { readVariables } from '../common/runtime/variables.ts';
import { GATEWAY_VARIABLES, type GatewayConfig } from './config.ts';
import { claimFolder } from './process/claim-folder.ts';
import { type KeptProcess, keepProcess } from './process/keep-process.ts';
import { bindPort } from './process/port.ts';
import { endLeftProcesses, processLock } from './process/process-lock.ts';
import { type CarrierStatus, type Order, STATUS_MS, type Told, type WorkerStatus } from './process/processes.ts';
import { tableIsDamaged } from './redirect/routes/damage.ts';
import { openOrphanedSpools } from './redirect/spool/orphaned-spools.ts';

/**
 * What a scan leaves behind in memory is short-lived. With Node's own 16 MiB for that, times three, a worker that was
 * never slower with 4 took 45 MiB more.
 */
const YOUNG_MIB = 4;
/**
 * What lives long while a program starts makes V8 put later objects of the same origin among the long-lived at once, those
 * of scans too. Clearing the long-lived stops a worker for 10 to 20 ms; without this they grew by 2.5 MB in 9 s of 30,000
 * scans a second, with it by 6.
 */
const NOT_PRETENURED = '--no-allocation-site-pretenuring';

/** How long workers that are told to close their port may take, and how often that is looked after, in ms. */
const CLOSE_MS = 1_000;
const LOOK_MS = 5;

/**
 * Starts the carrier and the workers, starts again which of them dies, and passes on what they tell each other; does
 * nothing that could fail. Workers end first, so that the carrier ships what they leave.
 */
async function main(config: GatewayConfig): Promise<void> {
  const logger = openLogger(config.LOG_LEVEL, { process: 'gateway' });
  exitOnFatalErrors(logger);
  // The carrier reads it; what is wrong with it ends the start here, with a sentence.
  readKafkaSecurity(config);
  await using running = new AsyncDisposableStack();
  running.defer(() => logger.info('the gateway has stopped'));
  expectWritable(config.DATA_DIR);
  if (config.COUNTRY_DATABASE !== undefined) expectReadable(config.COUNTRY_DATABASE);
  running.use(claimFolder(config.DATA_DIR, logger));
  const table = join(config.DATA_DIR, 'routes');
  const spools = openOrphanedSpools(join(config.DATA_DIR, 'spool'), logger);
  // What a process writes that is still there is shipped too, and its spool left to a later start.
  if (await endLeftProcesses(config.DATA_DIR, logger)) spools.addAll();
  const count = config.GATEWAY_WORKERS ?? availableParallelism();
  const port = await bindPort(config.LISTEN_HOST, config.PORT, count);
  const workers: KeptProcess[] = [];
  const workerStatuses = new Map<number, WorkerStatus>();
  const closed = new Set<number>();
  let carrierStatus: CarrierStatus | undefined;
  let carrier: KeptProcess | undefined;

  /** A route table that is damaged is thrown away: the carrier builds it anew from its topic. */
  async function repair(): Promise<void> {
    if (!(await tableIsDamaged(table))) return;
    logger.error('the route table is damaged; it is built anew from its topic');
    await Promise.all([...workers, ...(carrier ? [carrier] : [])].map((each) => each.kill()));
    rmSync(table, { recursive: true, force: true });
  }

  let repaired = repair();
  await repaired;
  const died = (broken: boolean) => {
    if (broken) repaired = repaired.then(repair);
    return repaired;
  };

  function tellWorkers(order: Order): void {
    for (const worker of workers) worker.send(order);
  }
  function tellState(): void {
    tellWorkers({ type: 'state', state: { carrier: carrierStatus, workers: [...workerStatuses.values()] } });
  }

  /** Starts a program of ours. Its lock on the file that is named after it goes with it, and the file then. */
  function startProgram(name: string, args: readonly string[], options: ForkOptions): ChildProcess {
    const child = fork(join(import.meta.dirname, name), args, { serialization: 'advanced', ...options });
    child.once('exit', () => {
      if (child.pid !== undefined) rmSync(processLock(config.DATA_DIR, child.pid), { force: true });
    });
    return child;
  }

  carrier = keepProcess({
    name: 'carrier',
    logger,
    start: () => startProgram('carrier.ts', [], {}),
    heard(message) {
      if (message.type === 'taken') workers[message.worker]?.send({ type: 'taken', offer: message.offer });
      if (message.type !== 'status' || !('carrier' in message)) return;
      carrierStatus = message.carrier;
      tellState();
    },
    died(broken) {
      carrierStatus = undefined;
      tellState();
      return died(broken);
    },
  });
  running.defer(() => carrier.stop());

  const execArgv = [`--max-semi-space-size=${YOUNG_MIB}`, NOT_PRETENURED, ...process.execArgv];
  for (let number = 0; number < count; number++) {
    const stdio: StdioOptions = ['inherit', 'inherit', 'inherit', 'ipc', port.descriptor(number)];
    workers.push(
      keepProcess({
        name: `worker ${number}`,
        logger,
        start() {
          const spool = `${number}-${randomUUID()}`;
          const worker = startProgram('worker.ts', [String(number), spool], { execArgv, stdio });
          worker.once('exit', () => spools.add(spool));
          return worker;
        },
        heard(message: Told) {
          if (message.type === 'held') carrier.send({ ...message, worker: number });
          if (message.type === 'status' && 'worker' in message) workerStatuses.set(number, message.worker);
          if (message.type === 'closed') closed.add(number);
        },
        died(broken) {
          workerStatuses.delete(number);
          return died(broken);
        },
      }),
    );
  }
  running.defer(async () => {
    // Whoever hears that its connection ends is back at once: nobody hears it before the port is closed in all of them.
    // Only they have it then, so that it is closed when they have taken what waits.
    port.close();
    tellWorkers({ type: 'close' });
    const end = performance.now() + CLOSE_MS;
    while (closed.size < workers.length && performance.now() < end) await sleep(LOOK_MS);
    await Promise.all(workers.map((worker) => worker.stop()));
  });

  await Promise.all([...workers.map(({ ready }) => ready), carrier.ready]);
  const telling = setInterval(() => {
    tellState();
    spools.removeShipped();
  }, STATUS_MS);
  running.defer(() => clearInterval(telling));
  // Whoever hears that it is ready may ask it to stop at once.
  const asked = stopRequest();
  logger.info({ port: port.number, workers: workers.length }, 'the gateway is ready');
  process.send?.({ type: 'ready', port: port.number });
  const reason = await asked;
  logger.info({ reason }, 'the gateway stops');
}

function expectWritable(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
    accessSync(folder, constants.W_OK);
  } catch (error) {
    throw new OperatorError(`DATA_DIR ${folder} can't be written to (${(error as NodeJS.ErrnoException).code}).`);
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
  else openLogger('fatal', { process: 'gateway' }).fatal({ err: error }, 'the gateway ends after an unexpected error');
  process.exitCode = 1;
}
process.exit();
