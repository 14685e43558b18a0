import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { OperatorError } from '../../common/runtime/operator-error.ts';
import type { MessageFromMain, MessageToMain } from './messages.ts';

/** A child process that is restarted whenever it dies. */
export interface SupervisedProcess {
  /** Resolves when it is ready for the first time; rejects if it fails before. */
  readonly ready: Promise<void>;
  send(message: MessageFromMain): void;
  /** Kills the current child process; it is restarted. */
  kill(): Promise<void>;
  /** Lets it finish its work and does not restart it. Resolves when it has exited. */
  stop(): Promise<void>;
}

export interface SuperviseOptions {
  /** The name in log messages. */
  readonly name: string;
  readonly logger: Logger;
  start(): ChildProcess;
  onMessage(message: MessageToMain): void;
  /** It is restarted once this resolves. `crashed`: it crashed or hung, as it may on damaged files. */
  onExit(crashed: boolean): Promise<void>;
}

/** The minimum interval between starts, in ms. */
const RESTART_MS = 1_000;
/** A process that sends no message for this many seconds of our own running time hangs; it should send one every five. */
const SILENT_S = 15;
/** Signals that kill a program which reads corrupt data from a memory-mapped file. */
const CRASH_SIGNALS: ReadonlySet<NodeJS.Signals | null> = new Set(['SIGSEGV', 'SIGBUS', 'SIGABRT', 'SIGILL', 'SIGFPE']);
/** How long it may take to stop before it is killed, in ms: slightly longer than it takes at most. */
const STOP_MS = 16_000;

/** Starts a process, and restarts it whenever it dies. */
export function superviseProcess({ name, logger, start, onMessage, onExit }: SuperviseOptions): SupervisedProcess {
  const ready = Promise.withResolvers<void>();
  let stopping = false;
  let wasReady = false;
  let silentSeconds = 0;
  let child: ChildProcess;
  let exited: Promise<unknown>;

  function run(): void {
    const started = performance.now();
    silentSeconds = 0;
    child = start();
    child.on('error', (error) => logger.error({ err: error }, `a message could not be sent to the ${name}`));
    child.on('message', (message: MessageToMain) => {
      silentSeconds = 0;
      if (message.type === 'ready') {
        wasReady = true;
        ready.resolve();
      } else if (message.type === 'failed') ready.reject(new OperatorError(message.sentence));
      onMessage(message);
    });
    exited = once(child, 'exit').then(([code, signal]) => replace(code, signal, started));
  }

  function replace(code: number | null, signal: NodeJS.Signals | null, started: number): void {
    if (stopping) return;
    if (!wasReady) {
      ready.reject(new Error(`the ${name} exited before it was ready, with ${signal ?? `code ${code}`}`));
      return;
    }
    logger.error({ code, signal }, `the ${name} has exited and is restarted`);
    onExit(CRASH_SIGNALS.has(signal) || silentSeconds >= SILENT_S)
      .then(() => sleep(Math.max(0, RESTART_MS - (performance.now() - started))))
      .then(() => {
        if (!stopping) run();
      });
  }

  run();
  const watchdog = setInterval(() => {
    // Counting ticks leaves out the time in which this process itself was suspended.
    if (++silentSeconds !== SILENT_S || !wasReady) return;
    logger.error(`the ${name} does not respond and is killed`);
    child.kill('SIGKILL');
  }, 1_000);
  return {
    ready: ready.promise,
    send(message) {
      if (child.connected) child.send(message, () => undefined);
    },
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
    async stop() {
      stopping = true;
      clearInterval(watchdog);
      this.send({ type: 'stop' });
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      if (child.exitCode === null && child.signalCode === null) await exited;
      clearTimeout(timer);
    },
  };
}
