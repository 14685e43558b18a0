import { isConnectTimeout } from '../../common/postgres/unavailable.ts';

/** How long a start waits for a Postgres that takes too long to accept connections, in ms. */
const WAIT_MS = 30_000;

/**
 * Runs the first statements of a start, again while connections time out: on a busy machine on which everything starts
 * at once, one may take more than the seconds that a call waits. A Postgres that refuses connections is reported at
 * once.
 */
export async function repeatWhileSlow(work: () => Promise<void>): Promise<void> {
  const end = performance.now() + WAIT_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isConnectTimeout(error) || performance.now() > end) throw error;
    }
  }
}
