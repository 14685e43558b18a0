import pg from 'pg';
import { pino } from 'pino';
import { startDeliverer } from './deliverer.ts';
import { unguardedConnect } from './guarded-connect.ts';
import { sealWith } from './seal.ts';

/** A deliverer to kill. */
const [url = '', secretKey = '', lease = ''] = process.argv.slice(2);
startDeliverer({
  pool: new pg.Pool({ connectionString: url, max: 3 }),
  seal: sealWith(Buffer.from(secretKey, 'base64')),
  connect: unguardedConnect(),
  logger: pino({ level: 'warn' }),
  limits: { lease: Number(lease), perEndpoint: 5 },
});
