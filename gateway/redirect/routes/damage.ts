import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** The exit code of `check-table.ts` for a table that can't be read completely; it may also die of a signal. */
export const DAMAGED = 3;

/** Signals that kill a program which reads corrupt data from a memory-mapped file. */
export const CRASH_SIGNALS: ReadonlySet<NodeJS.Signals | null> = new Set([
  'SIGSEGV',
  'SIGBUS',
  'SIGABRT',
  'SIGILL',
  'SIGFPE',
  'SIGTRAP',
]);

/** Timeout in ms, many times what a large table on a slow disk takes; on a corrupt one the check may loop for ever. */
const TIMEOUT_MS = 120_000;

/**
 * Whether the route table in a folder is damaged; a missing one is not. Rejects if it can't be checked, which says
 * nothing about the table.
 */
export async function tableIsDamaged(folder: string): Promise<boolean> {
  if (!existsSync(join(folder, 'data.mdb'))) return false;
  const program = join(import.meta.dirname, 'check-table.ts');
  const check = spawn(process.execPath, [program, folder], { stdio: ['ignore', 'pipe', 'ignore'] });
  let hasTimedOut = false;
  const timer = setTimeout(() => {
    hasTimedOut = check.kill('SIGKILL');
  }, TIMEOUT_MS);
  // Undefined if the check could not be started.
  let hasBegun = false;
  check.stdout?.once('data', () => {
    hasBegun = true;
  });
  const [code, signal] = await once(check, 'close').finally(() => clearTimeout(timer));
  if (signal === null) return code === DAMAGED;
  // At a limit on processes Node aborts, because it can't start its threads.
  if (!hasBegun) throw new Error(`the check of the route table ended with ${signal} before it began`);
  if (hasTimedOut || CRASH_SIGNALS.has(signal)) return true;
  // Such as SIGKILL by a kernel that is out of memory, or SIGTERM on stop.
  throw new Error(`the check of the route table was ended by ${signal}`);
}
