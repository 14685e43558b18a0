import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** The exit code of `check-table.ts` for a table that can't be read completely; it may also die of a signal. */
export const DAMAGED = 3;

/** Timeout in ms, many times what a large table on a slow disk takes; on a corrupt one the check may loop for ever. */
const TIMEOUT_MS = 120_000;

/**
 * Whether the route table in a folder is damaged; a missing one is not. Rejects if it can't be checked, which says nothing
 * about the table.
 */
export async function tableIsDamaged(folder: string): Promise<boolean> {
  if (!existsSync(join(folder, 'data.mdb'))) return false;
  const program = join(import.meta.dirname, 'check-table.ts');
  const check = spawn(process.execPath, [program, folder], {
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: TIMEOUT_MS,
    killSignal: 'SIGKILL',
  });
  // Undefined if the check could not be started.
  let hasBegun = false;
  check.stdout?.once('data', () => {
    hasBegun = true;
  });
  const [code, signal] = await once(check, 'close');
  // At a limit on processes Node aborts, because it can't start its threads.
  if (signal !== null && !hasBegun)
    throw new Error(`the check of the route table ended with ${signal} before it began`);
  return code === DAMAGED || signal !== null;
}
