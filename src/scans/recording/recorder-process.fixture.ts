import { pino } from 'pino';
import { openDatabase } from '../../db/database.ts';
import { entities } from '../../entities.ts';
import { keepingLog, logRecord } from '../scans.fixture.ts';
import { recordingOf } from './recorder.ts';

/** A recorder to kill: records the polls it is sent, and tells after the first. */
const [url = ''] = process.argv.slice(2);
const handle = await recordingOf({
  log: keepingLog(),
  database: await openDatabase(url, 2, entities),
  logger: pino({ level: 'silent' }),
});
process.on('message', async (polls: string[][]) => {
  for (const [index, poll] of polls.entries()) {
    await handle(poll.map((value) => logRecord('key', Buffer.from(value, 'base64'))));
    if (index === 0) process.send?.(1);
  }
});
