import { spawn } from 'node:child_process';
import { open, readFile } from 'node:fs/promises';
import { relative, resolve } from 'node:path';
import { OperatorError } from '../common/runtime/operator-error.ts';

/** A program to start. */
export interface ChildOptions {
  /** What people call it. */
  readonly name: string;
  /** Its file, from the project's folder on. */
  readonly program: string;
  /** Its whole environment, but for where Node keeps what it compiled. */
  readonly env: NodeJS.ProcessEnv;
  /** The file that its output is appended to. */
  readonly log: string;
}

/** A process that has said that it is ready. */
export interface Child {
  readonly pid: number;
  /** Resolves when the process is gone, with what to tell people if nobody asked it to go. */
  readonly ended: Promise<string>;
  /** Sends a signal, by default the one that asks for an orderly end; resolves when the process is gone. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

const PROJECT = resolve(import.meta.dirname, '..');

/** Where Node keeps what it compiled: with it the next start takes two thirds of the time. */
const COMPILED = resolve(PROJECT, 'node_modules/.cache/compiled');

/** The first core of a new database also migrates it. */
const READY_WITHIN_MS = 60_000;

const TAIL_LINES = 8;

/**
 * Starts a program and waits until it says `{ type: 'ready' }`; rejects with a sentence when it ends before, and with
 * the signal's reason, the process being gone, when `signal` is aborted before.
 *
 * The process runs in a session of its own: Ctrl-C in the terminal reaches us alone, and the order of stopping is ours.
 * Should we die without stopping it, it sees the channel close that `ready` came through.
 */
export async function startChild(options: ChildOptions, signal?: AbortSignal): Promise<Child> {
  signal?.throwIfAborted();
  const { name, program, env, log } = options;
  const output = await open(log, 'a');
  const { size } = await output.stat();
  const child = spawn(process.execPath, [program], {
    cwd: PROJECT,
    env: { NODE_COMPILE_CACHE: COMPILED, ...env },
    detached: true,
    stdio: ['ignore', output.fd, output.fd, 'ipc'],
  });
  await output.close();
  const { pid } = child;
  if (pid === undefined) throw new OperatorError(`The ${name} could not be started.`);

  const gone = new Promise<string>((resolve) => {
    child.once('exit', (code, by) => resolve(by === null ? `with code ${code}` : `by ${by}`));
  });
  const ended = gone.then(async (how) => `The ${name} ended ${how}. ${await tail(log, size)}`);
  const stop = async (by: NodeJS.Signals = 'SIGTERM') => {
    child.kill(by);
    await gone;
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

/** The last lines that a process added to a log which had `from` bytes before. */
async function tail(log: string, from: number): Promise<string> {
  const written = (await readFile(log)).subarray(from).toString().trimEnd();
  const path = relative(process.cwd(), log);
  if (written === '') return `It left nothing in ${path}.`;
  return `The end of ${path}:\n${written.split('\n').slice(-TAIL_LINES).join('\n')}`;
}
