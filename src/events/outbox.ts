import { context, propagation } from '@opentelemetry/api';
import type { Pool, PoolClient } from 'pg';
import type { NewRecord } from '../../common/log/log.ts';
import { type Queryable, run, statement } from '../../common/postgres/sql.ts';
import { BinaryRows } from '../db/binary-rows.ts';

/** A record for a topic of the log. */
export interface OutboxRecord extends NewRecord {
  readonly topic: string;
}

const insert = statement(
  'events_outbox_insert',
  `insert into outbox (topic, key, headers, value)
   select * from unnest($1::text[], $2::text[], $3::jsonb[], $4::bytea[])`,
);

/**
 * Writes records in the transaction of the change that they describe: both commit or neither. The relay publishes them.
 * Records of one key are published in the order of their transactions if those lock the row that the key names.
 */
export async function addToOutbox(tx: Queryable, records: readonly OutboxRecord[]): Promise<void> {
  const trace = traceHeaders();
  await run(tx, insert, [
    records.map(({ topic }) => topic),
    records.map(({ key }) => key),
    records.map(({ headers }) => JSON.stringify({ ...trace, ...headers })),
    records.map(({ value }) => value),
  ]);
}

/** The same for thousands of records, at a lower cost each; they are created from the items while writing. */
export async function copyToOutbox<Item>(
  tx: PoolClient,
  items: readonly Item[],
  recordsOf: (item: Item) => readonly OutboxRecord[],
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

/** Headers of the trace that the change belongs to. */
function traceHeaders(): Record<string, string> {
  const trace: Record<string, string> = {};
  propagation.inject(context.active(), trace);
  return trace;
}

/** Number of rows that are not published yet. */
export async function outboxBacklog(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ waiting: string }>('select count(*) as waiting from outbox_waiting');
  return Number(rows[0]?.waiting ?? 0);
}
