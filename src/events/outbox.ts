import { context, propagation } from '@opentelemetry/api';
import type { Pool } from 'pg';
import { type Queryable, run, statement } from '../db/sql.ts';
import type { NewRecord } from './log/log.ts';

/** A record for a topic of the log. */
export interface Outgoing extends NewRecord {
  readonly topic: string;
}

const insert = statement(
  'events_outbox_insert',
  `insert into outbox (topic, key, headers, value)
   select * from unnest($1::text[], $2::text[], $3::jsonb[], $4::bytea[])`,
);

/**
 * Writes records with the change that they tell of: both commit or neither. The relay carries them to the log. Records
 * of one key are carried in the order of their transactions when those lock the row that the key names.
 */
export async function addToOutbox(tx: Queryable, records: readonly Outgoing[]): Promise<void> {
  const trace: Record<string, string> = {};
  propagation.inject(context.active(), trace);
  await run(tx, insert, [
    records.map(({ topic }) => topic),
    records.map(({ key }) => key),
    records.map(({ headers }) => JSON.stringify({ ...trace, ...headers })),
    records.map(({ value }) => value),
  ]);
}

/** Rows that wait for the relay, and since when the oldest does. */
export async function outboxBacklog(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ waiting: string }>('select count(*) as waiting from outbox');
  return Number(rows[0]?.waiting ?? 0);
}
