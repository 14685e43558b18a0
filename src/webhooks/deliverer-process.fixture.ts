import pg from 'pg';
import { pino } from 'pino';
import { listen } from '../../common/postgres/notifications.ts';
import { startDeliverer } from './deliverer.ts';
import { unguardedConnect } from './guarded-connect.ts';
import { sealWith } from './seal.ts';

/** A deliverer to kill. */
const [url = '', secretKey = '', lease = ''] = process.argv.slice(2);
const pool = new pg.Pool({ connectionString: url, max: 3 });
const logger = pino({ level: 'warn' });
startDeliverer({
  pool,
  notifications: listen(pool, logger),
  seal: sealWith(Buffer.from(secretKey, 'base64')),
  connect: unguardedConnect(),
  logger,
  limits: { lease: Number(lease), perEndpoint: 5 },
});
