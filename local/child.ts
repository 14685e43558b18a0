import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { OperatorError } from '../common/runtime/operator-error.ts';
import { tail } from './log-tail.ts';

/** A program to start. */
export interface ChildOptions {
  /** The name in messages. */
  readonly name: string;
  /** Its file, relative to the project's folder. */
  readonly program: string;
  /** Its whole environment, except for Node's compile cache. */
  readonly env: NodeJS.ProcessEnv;
  /** The file to which its output is appended. */
  readonly log: string;
}

/** A process that has reported that it is ready. */
export interface Child {
  readonly pid: number;
  /** Resolves when the process has exited, with a message for the case that the exit was not requested. */
  readonly ended: Promise<string>;
  /** Sends a signal, by default SIGTERM for a graceful stop; resolves when the process has exited. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

const PROJECT = resolve(import.meta.dirname, '..');

/** Node's compile cache: with it the next start takes two thirds of the time. */
const COMPILE_CACHE = resolve(PROJECT, 'node_modules/.cache/compiled');

/** Includes the time for the first core to migrate a new database. */
const READY_WITHIN_MS = 60_000;

/**
 * Starts a program and waits for its message `{ type: 'ready' }`. Rejects with an `OperatorError` if it exits before,
 * and with the signal's reason if `signal` aborts before; the process has then exited.
 *
 * The process runs in a separate session: Ctrl-C in the terminal reaches only this process, which stops the others in
 * order. If this process dies without stopping it, the IPC channel closes, and the child exits.
 */
export async function startChild(options: ChildOptions, signal?: AbortSignal): Promise<Child> {
  const { name, program, env, log } = options;
  await using output = await open(log, 'a');
  const { size } = await output.stat();
  signal?.throwIfAborted();
  const child = spawn(process.execPath, [program], {
    cwd: PROJECT,
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
    detached: true,
    stdio: ['ignore', output.fd, output.fd, 'ipc'],
  });
  const { pid } = child;
  if (pid === undefined) {
    const [error] = (await once(child, 'error')) as [Error];
    throw new OperatorError(`The ${name} could not be started: ${error.message}.`);
  }

  // At once: a signal to the whole process group may reach the process before it has a session of its own, and end it.
  const exited = new Promise<string>((resolve) => {
    child.once('exit', (code, by) => resolve(by === null ? `with code ${code}` : `by ${by}`));
  });
  const ended = exited.then(async (how) => `The ${name} ended ${how}. ${await tail(log, size)}`);
  const stop = async (by: NodeJS.Signals = 'SIGTERM') => {
    child.kill(by);
    // This includes reading the log: whoever stops a process may delete its folder then.
    await ended;
  };

  const outcome = Promise.withResolvers<void>();
  child.on('message', (message: { type?: unknown }) => {
    if (message.type === 'ready') outcome.resolve();
  });
  ended.then((sentence) => outcome.reject(new OperatorError(sentence)));
  const late = new OperatorError(`The ${name} was not ready within ${READY_WITHIN_MS / 1000} s; see ${log}.`);
  const timer = setTimeout(() => outcome.reject(late), READY_WITHIN_MS);
  const abort = () => outcome.reject(signal?.reason);
  signal?.addEventListener('abort', abort);
  try {
    await outcome.promise;
  } catch (error) {
    await stop();
    throw error;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  }
  return { pid, ended, stop };
}
