import type { Pool } from 'pg';
import type { Logger } from 'pino';
import type { Log } from '../../common/log/log.ts';
import { periodically } from '../../common/runtime/periodically.ts';
import type { Notifications } from '../db/notifications.ts';
import { finishEndpoints } from './endpoints/finish-endpoints.ts';
import { startFanOut } from './fan-out.ts';
import type { SecretCipher } from './secret-cipher.ts';
import { startDeliverer } from './sending/deliverer.ts';
import { guardedConnect, unguardedConnect } from './sending/guarded-connect.ts';
import { startUpkeep } from './upkeep.ts';

/** How often deliveries that are left of disabled and deleted endpoints are looked for, in ms. */
const FINISH_MS = 5_000;

export interface WebhooksOptions {
  readonly pool: Pool;
  readonly log: Log;
  readonly notifications: Notifications;
  readonly secretCipher: SecretCipher;
  /** Whether requests may go to private addresses. */
  readonly allowPrivate: boolean;
  /** `address` or `address:port`; an empty list means the system's. */
  readonly resolvers: readonly string[];
  readonly logger: Logger;
}

/** Starts creating deliveries of events and sending them. Any number of processes may run it. */
export function startWebhooks(options: WebhooksOptions): { stop(): Promise<void> } {
  const { pool, log, notifications, secretCipher, allowPrivate, resolvers, logger } = options;
  const connect = allowPrivate ? unguardedConnect() : guardedConnect(resolvers);
  const upkeep = startUpkeep(pool, secretCipher, logger);
  const finishing = periodically(FINISH_MS, 'finishing disabled and deleted endpoints', logger, (stopping) =>
    finishEndpoints(pool, stopping),
  );
  const deliverer = startDeliverer({ pool, notifications, secretCipher, connect, logger });
  const fanOut = startFanOut({ pool, log, logger });
  return {
    async stop() {
      // Interrupted first: they take longest to end.
      const interrupted = [finishing.stop(), upkeep.stop()];
      await fanOut.stop();
      await deliverer.stop();
      await Promise.all(interrupted);
    },
  };
}
