import { type ChildProcess, type ForkOptions, fork } from 'node:child_process';
import { rmSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Logger } from 'pino';
import { processLock } from './process-lock.ts';

const GATEWAY = resolve(import.meta.dirname, '..');

/** Starts a program of the gateway (`worker.ts`) with these arguments. */
export type StartProgram = (name: string, args: readonly string[], options: ForkOptions) => ChildProcess;

/** Returns a function that starts programs, whose lock files are removed when they exit. */
export function programStarter(dataDir: string, logger: Logger): StartProgram {
  return (name, args, options) => {
    const child = fork(resolve(GATEWAY, name), args, { serialization: 'advanced', ...options });
    child.once('exit', () => {
      try {
        if (child.pid !== undefined) rmSync(processLock(dataDir, child.pid), { force: true });
      } catch (error) {
        logger.warn({ err: error }, 'the lock file of an ended process can’t be removed');
      }
    });
    return child;
  };
}
