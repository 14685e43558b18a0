import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Logger } from 'pino';
import { OperatorError } from '../../common/runtime/operator-error.ts';
import { pause } from '../../common/runtime/pause.ts';
import { onTicks } from '../clock/ticks.ts';
import { CRASH_SIGNALS } from '../redirect/routes/damage.ts';
import type { MessageFromMain, MessageToMain } from './messages.ts';

/** A child process that is restarted whenever it dies. */
export interface SupervisedProcess {
  /** Resolves when it is ready for the first time; rejects if it fails before, and then it is not started again. */
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
  onExit(): void;
  /**
   * It is restarted once this resolves; after a rejection it is called again. `crashed`: the process crashed or hung,
   * as it may on damaged files.
   */
  beforeRestart(crashed: boolean): Promise<void>;
}

interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The minimum interval between attempts to start it, in ms. */
const RESTART_MS = 1_000;
/**
 * A process that sends no message for this many seconds of our own running time hangs; it should send one every five.
 */
const SILENT_S = 15;
/** How long it may take to stop before it is killed, in ms: slightly longer than it takes at most. */
const STOP_MS = 16_000;

/** Starts a process, and restarts it whenever it dies; a restart that fails is tried again until it succeeds. */
export function superviseProcess(options: SuperviseOptions): SupervisedProcess {
  const { name, logger, start, onMessage, onExit, beforeRestart } = options;
  const ready = Promise.withResolvers<void>();
  const stopping = new AbortController();
  let wasReady = false;
  let silentSeconds = 0;
  /** Undefined while none is running. */
  let current: { readonly child: ChildProcess; readonly exited: Promise<Exit> } | undefined;

  function logRetry(error: unknown): void {
    logger.error({ err: error }, `the ${name} can’t be started; trying again`);
  }

  async function supervise(): Promise<void> {
    let crashed = false;
    for (let isRestart = false; !stopping.signal.aborted; isRestart = true) {
      const next = performance.now() + RESTART_MS;
      try {
        if (isRestart) await beforeRestart(crashed);
        if (stopping.signal.aborted) return;
        crashed = false;
        const { code, signal } = await run();
        if (stopping.signal.aborted) return;
        if (!wasReady) {
          const message = `The ${name} exited before it was ready, with ${signal ?? `code ${code}`}.`;
          // The kernel's answer to a write into a mapped file that the disk has no room for.
          ready.reject(
            signal === 'SIGBUS' ? new OperatorError(`${message} Its disk may be full.`) : new Error(message),
          );
          return;
        }
        logger.error({ code, signal }, `the ${name} has exited and is restarted`);
        crashed = CRASH_SIGNALS.has(signal) || silentSeconds >= SILENT_S;
        onExit();
      } catch (error) {
        if (!wasReady) {
          const { message } = error as Error;
          ready.reject(new OperatorError(`The ${name} can't be started: ${message}.`, { cause: error }));
          return;
        }
        logRetry(error);
      }
      await pause(Math.max(0, next - performance.now()), stopping.signal);
    }
  }

  /** Starts it and resolves when it has exited; rejects if it can't be started. */
  async function run(): Promise<Exit> {
    silentSeconds = 0;
    const child = start();
    if (child.pid === undefined) {
      // Node emits why, and never `exit`.
      const [error] = await once(child, 'error');
      throw error;
    }
    child.on('error', (error) => logger.error({ err: error }, `a message could not be sent to the ${name}`));
    child.on('message', (message: MessageToMain) => {
      silentSeconds = 0;
      if (message.type === 'ready') {
        wasReady = true;
        ready.resolve();
      } else if (message.type === 'failed') {
        const error = new OperatorError(message.sentence);
        if (wasReady) logRetry(error);
        else ready.reject(error);
      }
      onMessage(message);
    });
    const exited = new Promise<Exit>((resolve) => {
      child.once('exit', (code, signal) => resolve({ code, signal }));
    });
    current = { child, exited };
    const exit = await exited;
    current = undefined;
    return exit;
  }

  supervise();
  const stopWatchdog = onTicks(1_000, () => {
    // Counting ticks leaves out the time in which this process itself was suspended.
    if (!current || ++silentSeconds !== SILENT_S || !wasReady) return;
    logger.error(`the ${name} does not respond and is killed`);
    current.child.kill('SIGKILL');
  });
  return {
    ready: ready.promise,
    send(message) {
      if (current?.child.connected) current.child.send(message, () => undefined);
    },
    async kill() {
      current?.child.kill('SIGKILL');
      await current?.exited;
    },
    async stop() {
      stopping.abort();
      stopWatchdog();
      if (!current) return;
      const { child, exited } = current;
      this.send({ type: 'stop' });
      const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      await exited;
      clearTimeout(timer);
    },
  };
}
