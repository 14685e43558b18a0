import { context, propagation } from '@opentelemetry/api';
import type { Pool, PoolClient } from 'pg';
import type { NewRecord } from '../../common/log/log.ts';
import { type Queryable, run, statement } from '../../common/postgres/sql.ts';
import { BinaryRows } from '../db/binary-rows.ts';

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
  const trace = traceHeaders();
  await run(tx, insert, [
    records.map(({ topic }) => topic),
    records.map(({ key }) => key),
    records.map(({ headers }) => JSON.stringify({ ...trace, ...headers })),
    records.map(({ value }) => value),
  ]);
}

/** The same for records by the thousand, at less cost for each. They are made of the items as they are written. */
export async function copyToOutbox<Item>(
  tx: PoolClient,
  items: readonly Item[],
  recordsOf: (item: Item) => readonly Outgoing[],
): Promise<void> {
  const trace = traceHeaders();
  await BinaryRows.copyEach(tx, 'outbox (topic, key, headers, value)', items, (rows, item) => {
    for (const { topic, key, headers, value } of recordsOf(item)) {
      rows.row(4);
      rows.text(topic);
      rows.text(key);
      rows.json(JSON.stringify({ ...trace, ...headers }));
      rows.bytes(value);
    }
  });
}

/** The trace that the change is part of. */
function traceHeaders(): Record<string, string> {
  const trace: Record<string, string> = {};
  propagation.inject(context.active(), trace);
  return trace;
}

/** How many rows wait for the relay. */
export async function outboxBacklog(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ waiting: string }>('select count(*) as waiting from outbox_waiting');
  return Number(rows[0]?.waiting ?? 0);
}
