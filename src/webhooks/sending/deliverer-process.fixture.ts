import pg from 'pg';
import { pino } from 'pino';
import { listen } from '../../db/notifications.ts';
import { secretCipherWith } from '../secret-cipher.ts';
import { startDeliverer } from './deliverer.ts';
import { unguardedConnect } from './guarded-connect.ts';

/** Runs a deliverer in a process of its own, which a test kills. */
const [url = '', secretKey = '', leaseMs = ''] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url, max: 3 });
const logger = pino({ level: 'warn' });
startDeliverer({
  pool,
  notifications: listen(pool, logger),
  secretCipher: secretCipherWith(Buffer.from(secretKey, 'base64')),
  connect: unguardedConnect(),
  logger,
  limits: { leaseMs: Number(leaseMs), requestsPerEndpoint: 5 },
});
