import { rmdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { sealWhatIsLeft, spoolsIn } from './segments.ts';

/** Spools that nobody writes to any more: each worker has one of its own, and leaves it when it ends. */
export interface LeftSpools {
  /** The worker that wrote to this spool is gone. */
  leave(spool: string): void;
  /** The same for all spools that there are. */
  leaveAll(): void;
  /** Removes those that the carrier has emptied. Call it again and again. */
  tend(): void;
}

/** Looks after the spools in `folder`, so that the carrier can remove their segments, and removes those that are empty. */
export function leaveSpools(folder: string, logger: Logger): LeftSpools {
  /** Whether each is sealed. */
  const left = new Map<string, boolean>();

  function seal(spool: string): void {
    try {
      sealWhatIsLeft(join(folder, spool));
      left.set(spool, true);
    } catch (error) {
      if (!left.has(spool)) logger.error({ err: error, spool }, 'a spool that a worker has left can’t be sealed yet');
      left.set(spool, false);
    }
  }

  return {
    leave: seal,
    leaveAll() {
      for (const spool of spoolsIn(folder)) seal(spool);
    },
    tend() {
      for (const [spool, isSealed] of left) {
        if (!isSealed) seal(spool);
        else if (isGone(join(folder, spool))) left.delete(spool);
      }
    },
  };
}

/** Removes a folder if it is empty; whether it is gone. */
function isGone(folder: string): boolean {
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}
