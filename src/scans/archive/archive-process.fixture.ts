import { openDatabase } from '../../db/database.ts';
import { entities } from '../../entities.ts';
import { archiveMonths } from './archive.ts';

/** Archives to files, to be killed: tells when it begins and when it is done. */
const [url = '', folder = ''] = process.argv.slice(2);
const { pool } = await openDatabase(url, 2, entities);
await pool.query('select 1');
process.send?.('begins');
await archiveMonths(pool, { hotMonths: 1, to: 'file', folder }, Date.now());
process.exit();
