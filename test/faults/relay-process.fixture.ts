import pg from 'pg';
import { pino } from 'pino';
import { openKafkaLog } from '../../common/log/kafka.ts';
import { listen } from '../../src/db/notifications.ts';
import { startRelay } from '../../src/events/relay.ts';

/** A process with only a relay, for tests that kill it. */
const [url = '', brokers = ''] = process.argv.slice(2);
const logger = pino({ level: 'silent' });
const pool = new pg.Pool({ connectionString: url, max: 2 });
pool.on('error', () => undefined);
const log = openKafkaLog({ brokers: brokers.split(','), clientId: 'signpost-test', logger });
startRelay({ pool, log, notifications: listen(pool, logger), logger, retentionHours: 24 });
process.send?.('ready');
