import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { OperatorError } from '../../common/runtime/operator-error.ts';
import type { Order, Told } from './processes.ts';

/** A process that is there, and is replaced when it dies. */
export interface KeptProcess {
  /** Resolves when it is ready for the first time; rejects when it can't be. */
  readonly ready: Promise<void>;
  send(order: Order): void;
  /** Ends the one that runs, at once; another one takes its place. */
  kill(): Promise<void>;
  /** Lets it finish what is in hand; no other one takes its place. Resolves when it is gone. */
  stop(): Promise<void>;
}

export interface KeepOptions {
  /** What people call it. */
  readonly name: string;
  readonly logger: Logger;
  start(): ChildProcess;
  heard(message: Told): void;
  /** Another one is started once this resolves. `broken`: it crashed or hung, as on files that are damaged. */
  died(broken: boolean): Promise<void>;
}

/** The least time from one start to the next, in ms. */
const RESTART_MS = 1_000;
/** A process that says nothing for so many seconds, of ours, hangs; it should say something twice in one. */
const SILENT_S = 15;
/** What a program dies of that reads nonsense from a file that it has mapped. */
const CRASHES: ReadonlySet<NodeJS.Signals | null> = new Set(['SIGSEGV', 'SIGBUS', 'SIGABRT', 'SIGILL', 'SIGFPE']);
/** How long it may take to end before it is killed, in ms: somewhat longer than it takes at most. */
const STOP_MS = 16_000;

/** Starts a process, and another one whenever it dies. */
export function keepProcess({ name, logger, start, heard, died }: KeepOptions): KeptProcess {
  const ready = Promise.withResolvers<void>();
  let stopping = false;
  let wasReady = false;
  let silent = 0;
  let child: ChildProcess;
  let gone: Promise<unknown>;

  function run(): void {
    const started = performance.now();
    silent = 0;
    child = start();
    child.on('error', (error) => logger.error({ err: error }, `the ${name} can’t be reached`));
    child.on('message', (message: Told) => {
      silent = 0;
      if (message.type === 'ready') {
        wasReady = true;
        ready.resolve();
      } else if (message.type === 'failed') ready.reject(new OperatorError(message.sentence));
      heard(message);
    });
    gone = once(child, 'exit').then(([code, signal]) => replace(code, signal, started));
  }

  function replace(code: number | null, signal: NodeJS.Signals | null, started: number): void {
    if (stopping) return;
    if (!wasReady) {
      ready.reject(new Error(`the ${name} ended before it was ready, with ${signal ?? `code ${code}`}`));
      return;
    }
    logger.error({ code, signal }, `the ${name} is gone; another one takes its place`);
    died(CRASHES.has(signal) || silent >= SILENT_S)
      .then(() => sleep(Math.max(0, RESTART_MS - (performance.now() - started))))
      .then(() => {
        if (!stopping) run();
      });
  }

  run();
  const watching = setInterval(() => {
    // Seconds in which we were stopped ourselves don't count.
    if (++silent !== SILENT_S || !wasReady) return;
    logger.error(`the ${name} hangs and is killed`);
    child.kill('SIGKILL');
  }, 1_000);
  return {
    ready: ready.promise,
    send(order) {
      if (child.connected) child.send(order, () => undefined);
    },
    async kill() {
      child.kill('SIGKILL');
      await gone;
    },
    async stop() {
      stopping = true;
      clearInterval(watching);
      this.send({ type: 'stop' });
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      if (child.exitCode === null && child.signalCode === null) await gone;
      clearTimeout(timer);
    },
  };
}
