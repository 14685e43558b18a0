import { pino } from 'pino';
import { openDatabase } from '../../db/database.ts';
import { entities } from '../../entities.ts';
import { inMemoryLog, logRecord, pollHandler } from '../scans.fixture.ts';

/** A recorder for tests to kill: records the polls it receives and sends a message after the first. */
const [url = ''] = process.argv.slice(2);
const handle = pollHandler({
  log: inMemoryLog(),
  database: await openDatabase(url, 2, entities),
  logger: pino({ level: 'silent' }),
});
process.on('message', async (polls: string[][]) => {
  for (const [index, poll] of polls.entries()) {
    await handle(poll.map((value) => logRecord('key', Buffer.from(value, 'base64'))));
    if (index === 0) process.send?.(1);
  }
});
