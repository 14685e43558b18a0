import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** The exit code of `check-table.ts` for a table that can't be read completely; it may also die of a signal. */
export const DAMAGED = 3;

/** Timeout in ms, many times what a large table on a slow disk takes; on a corrupt one the check may loop for ever. */
const TIMEOUT_MS = 120_000;

/** Whether the route table in a folder is damaged; a missing one is not. */
export async function tableIsDamaged(folder: string): Promise<boolean> {
  if (!existsSync(join(folder, 'data.mdb'))) return false;
  const program = join(import.meta.dirname, 'check-table.ts');
  const check = spawn(process.execPath, [program, folder], {
    stdio: 'ignore',
    timeout: TIMEOUT_MS,
    killSignal: 'SIGKILL',
  });
  const [code, signal] = await once(check, 'exit');
  return code === DAMAGED || signal !== null;
}
