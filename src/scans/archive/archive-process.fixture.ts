import { openDatabase } from '../../db/database.ts';
import { entities } from '../../entities.ts';
import { archiveMonths } from './archive.ts';

/** Archives to files, for tests to kill; sends a message when it starts. */
const [url = '', folder = ''] = process.argv.slice(2);
const { pool } = await openDatabase(url, 2, entities);
await pool.query('select 1');
process.send?.('started');
await archiveMonths(pool, { hotMonths: 1, to: 'file', folder }, Date.now());
process.exit();
