import { rmdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { ITSELF, sealOrphan, spoolsIn } from './segments.ts';

/** Spools whose worker has ended: each worker writes to a new spool of its own. */
export interface OrphanedSpools {
  /** Seals a spool whose worker has ended. */
  add(spool: string): void;
  /** The same for all existing spools. */
  addAll(): void;
  /** Removes those that the carrier has emptied, and retries to seal the others. To be called periodically. */
  removeShipped(): void;
}

/**
 * Seals orphaned spools in `folder`, so that the carrier can remove their segments, and removes those that are empty.
 */
export function openOrphanedSpools(folder: string, logger: Logger): OrphanedSpools {
  /** Orphaned spools, and whether each is sealed. */
  const orphans = new Map<string, boolean>();

  function seal(spool: string): void {
    try {
      sealOrphan(join(folder, spool));
      orphans.set(spool, true);
    } catch (error) {
      if (!orphans.has(spool)) logger.error({ err: error, spool }, 'the spool of an ended worker can’t be sealed yet');
      orphans.set(spool, false);
    }
  }

  return {
    add: seal,
    addAll() {
      for (const spool of spoolsIn(folder)) seal(spool);
    },
    removeShipped() {
      for (const [spool, isSealed] of orphans) {
        if (!isSealed) seal(spool);
        else if (spool === ITSELF || removeIfEmpty(join(folder, spool))) orphans.delete(spool);
      }
    },
  };
}

/** Removes a folder if it is empty; returns whether it no longer exists. */
function removeIfEmpty(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}
