import { renameSync, rmSync } from 'node:fs';
import type { Logger } from 'pino';
import { tableIsDamaged } from './damage.ts';

/**
 * Deletes the route table if it is damaged, so that the carrier rebuilds it from its topic. Returns a function that
 * waits for a repair that is under way, and after a crash repairs the table again; it rejects if that repair fails, and
 * not if another one does. `killUsers`: kills the processes that have opened the table.
 */
export async function repairRouteTable(options: {
  table: string;
  killUsers(): Promise<unknown>;
  logger: Logger;
}): Promise<(crashed: boolean) => Promise<void>> {
  const { table, killUsers, logger } = options;

  async function repair(): Promise<void> {
    if (!(await tableIsDamaged(table))) return;
    // Moved first, because a disk that can't be written must not stop the processes that still run.
    const damaged = `${table}.damaged`;
    rmSync(damaged, { recursive: true, force: true });
    renameSync(table, damaged);
    logger.error('the route table is damaged; it is rebuilt from its topic');
    await killUsers();
    rmSync(damaged, { recursive: true, force: true });
  }

  let repaired = repair();
  await repaired;
  return (crashed) => {
    const done = crashed ? repaired.then(repair) : repaired;
    repaired = done.catch(() => undefined);
    return done;
  };
}
