import { pino } from 'pino';
import { type LogOptions, openLog } from './open.ts';

export interface MemberOptions extends Pick<LogOptions, 'kafkaBrokers' | 'databaseUrl'> {
  readonly topic: string;
  readonly group: string;
}

/** A process that joins a group, notifies its parent of received records, and never finishes handling them. */
const { topic, group, ...options }: MemberOptions = JSON.parse(process.argv[2] ?? '');
const log = await openLog({ ...options, clientId: 'signpost-test-member', logger: pino({ level: 'silent' }) });
log.consume({
  topic,
  group,
  handle(records) {
    process.send?.(records.length);
    return new Promise(() => undefined);
  },
});
