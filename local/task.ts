import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { setPriority } from 'node:os';
import { resolve } from 'node:path';

/** A program to run to its end. */
export interface TaskOptions {
  /** The program and its arguments. */
  readonly command: readonly [string, ...string[]];
  readonly env: NodeJS.ProcessEnv;
  /** The file to which its output is appended. */
  readonly log: string;
  /** Ends the program, with all processes that it started. */
  readonly signal: AbortSignal;
}

const PROJECT = resolve(import.meta.dirname, '..');

/** Lower than that of the processes that answer scans and calls. */
const PRIORITY = 10;

/**
 * Runs a program in the project's folder, in a session of its own and with a low priority. Resolves when it has ended:
 * with whether it succeeded. Never rejects for what the program does.
 */
export async function runTask({ command, env, log, signal }: TaskOptions): Promise<boolean> {
  const [program, ...args] = command;
  await using output = await open(log, 'a');
  if (signal.aborted) return false;
  const child = spawn(program, args, {
    cwd: PROJECT,
    env,
    detached: true,
    stdio: ['ignore', output.fd, output.fd],
  });
  const { pid } = child;
  if (pid === undefined) {
    const [error] = await once(child, 'error');
    await output.write(`${error.message}\n`);
    return false;
  }
  setPriority(pid, PRIORITY);
  const stop = () => {
    try {
      process.kill(-pid, 'SIGTERM');
    } catch (error) {
      // It has ended, and its exit is not reported yet.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  };
  signal.addEventListener('abort', stop);
  const [code] = await once(child, 'exit');
  signal.removeEventListener('abort', stop);
  return code === 0;
}
