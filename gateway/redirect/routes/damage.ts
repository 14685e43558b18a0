import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** How `check-table.ts` ends on a table that can't be read to its end; by a signal is the other way. */
export const DAMAGED = 3;

/** Many times what it takes for a large table on a slow disk, in ms; on nonsense it may go round for ever. */
const MOST_MS = 120_000;

/** Whether the route table in a folder is damaged; one that is not there is none. */
export async function tableIsDamaged(folder: string): Promise<boolean> {
  if (!existsSync(join(folder, 'data.mdb'))) return false;
  const program = join(import.meta.dirname, 'check-table.ts');
  const check = spawn(process.execPath, [program, folder], {
    stdio: 'ignore',
    timeout: MOST_MS,
    killSignal: 'SIGKILL',
  });
  const [code, signal] = await once(check, 'exit');
  return code === DAMAGED || signal !== null;
}
