import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { OrphanedSpools } from '../redirect/spool/orphaned-spools.ts';
import type { MessageFromMain, MessageToMain, WorkerStatus } from './messages.ts';
import type { Port } from './port.ts';
import type { StartProgram } from './start-program.ts';
import { type SupervisedProcess, superviseProcess } from './supervised-process.ts';

/** The workers of a gateway, which answer its requests. */
export interface Workers {
  readonly processes: readonly SupervisedProcess[];
  /** Resolves when all have been ready; rejects if one of them fails before. */
  readonly ready: Promise<unknown>;
  /** Whether all are running and listening. */
  areServing(): boolean;
  /** What those that are running have reported last. */
  statuses(): WorkerStatus[];
  send(message: MessageFromMain): void;
  /** Sends a message about the stop, to those that are restarted meanwhile too. */
  ask(message: MessageFromMain): void;
  /** Closes the port and stops them. */
  stop(): Promise<void>;
}

/**
 * The semi-space size of workers: garbage of scans is short-lived, so that they are answered no faster with more than
 * 4, and Node's default of 16 MiB (times three) takes 45 MiB more memory. Garbage of API requests lives longer: with 8
 * a worker took 146 instead of 164 µs of CPU for a read and 318 instead of 346 for a list, and with 16 the same. With
 * 1,000,000 codes it took 359 instead of 348 MiB.
 */
const SEMI_SPACE_MIB = 8;
/**
 * Objects that survive the start of a program make V8 allocate later objects from the same site in the old generation
 * at once, those of scans too. Collecting the old generation stops a worker for 10 to 20 ms; with this option it grew
 * by 2.5 MB in 9 s of 30,000 scans a second, and without it by 6 MB.
 */
const NO_PRETENURING = '--no-allocation-site-pretenuring';
/**
 * One thread of V8 for each worker instead of four: there is a worker for each CPU core, and each thread that collects
 * garbage takes it from a worker for 4 ms at a time. With four, the p99 of new connections after kept-alive ones was 11
 * to 21 ms instead of 6 to 11.
 */
const ONE_V8_THREAD = '--v8-pool-size=1';

/** How long workers may take to close their port, and how often that is checked, in ms. */
const CLOSE_MS = 1_000;
const LOOK_MS = 5;

/** Starts `count` workers, each with its sockets of the port, and restarts them when they die. */
export function superviseWorkers(options: {
  count: number;
  port: Port;
  /** Take the spool of each worker that exits. */
  spools: OrphanedSpools;
  startProgram: StartProgram;
  onMessage(worker: number, message: MessageToMain): void;
  /** Called with the name of a worker that has died. */
  onExit(name: string): void;
  beforeRestart(crashed: boolean): Promise<void>;
  logger: Logger;
}): Workers {
  const { count, port, spools, startProgram, onMessage, onExit, beforeRestart, logger } = options;
  const statuses = new Map<number, WorkerStatus>();
  const serving = new Set<number>();
  const closed = new Set<number>();
  const asked: MessageFromMain[] = [];
  const execArgv = [`--max-semi-space-size=${SEMI_SPACE_MIB}`, NO_PRETENURING, ONE_V8_THREAD, ...process.execArgv];
  const processes = Array.from({ length: count }, (_, number) => {
    const sockets = port.descriptors(number);
    return superviseProcess({
      name: `worker ${number}`,
      logger,
      start() {
        const spool = `${number}-${randomUUID()}`;
        const worker = startProgram('worker.ts', [String(number), spool, String(sockets.length)], {
          execArgv,
          stdio: ['inherit', 'inherit', 'inherit', 'ipc', ...sockets],
        });
        worker.once('exit', () => spools.add(spool));
        if (worker.pid !== undefined) for (const each of asked) worker.send(each, () => undefined);
        return worker;
      },
      onMessage(message) {
        if (message.type === 'status' && 'worker' in message) statuses.set(number, message.worker);
        if (message.type === 'ready') serving.add(number);
        if (message.type === 'closed') closed.add(number);
        onMessage(number, message);
      },
      onExit() {
        statuses.delete(number);
        serving.delete(number);
        onExit(`worker ${number}`);
      },
      beforeRestart,
    });
  });

  function send(message: MessageFromMain): void {
    for (const worker of processes) worker.send(message);
  }

  function ask(message: MessageFromMain): void {
    asked.push(message);
    send(message);
  }

  return {
    processes,
    ready: Promise.all(processes.map(({ ready }) => ready)),
    areServing: () => serving.size === count,
    statuses: () => [...statuses.values()],
    send,
    ask,
    async stop() {
      // Clients reconnect as soon as their connection is closed, so no worker closes connections before all have closed
      // the port. Only the workers hold it from here on, so it is closed once they have accepted what is queued.
      port.close();
      ask({ type: 'close', isInherited: port.isInherited });
      const end = performance.now() + CLOSE_MS;
      while (closed.size < count && performance.now() < end) await sleep(LOOK_MS);
      await Promise.all(processes.map((worker) => worker.stop()));
    },
  };
}
