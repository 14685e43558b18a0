import { context, propagation } from '@opentelemetry/api';
import type { PoolClient } from 'pg';
import type { NewRecord } from '../../common/log/log.ts';
import { type Queryable, run, statement } from '../../common/postgres/sql.ts';
import { arrayParameters, arraysOf, columnsOf, copyRows, listed, type RowOf } from '../db/columns.ts';
import { LOCKS } from '../db/locks.ts';
import { notifying } from '../db/notifications.ts';
import { OutboxEntity } from './entities.ts';

/** A record for a topic of the log. */
export interface OutboxRecord extends NewRecord {
  readonly topic: string;
}

/** A row to insert. */
export type NewOutboxRow = Omit<RowOf<OutboxEntity>, 'id' | 'at' | 'slot'>;

/** The columns that are inserted; Postgres sets the others. */
export const NEW_COLUMNS = columnsOf(OutboxEntity).filter(({ name }) => !['id', 'at', 'slot'].includes(name));

/**
 * A query that wakes the relay when the transaction commits, but only if it sleeps: before Postgres 19 transactions
 * that notify commit one after the other. A transaction that obtains the lock holds it until it ends. Until then the
 * relay can't fall asleep, and once it has, it reads the outbox again before it waits.
 */
export const WAKE = `select ${notifying('outbox')} where not pg_try_advisory_xact_lock_shared(${LOCKS.relaySleeps})`;

const insert = statement(
  'events_outbox_insert',
  `with inserted as (
     insert into outbox (${listed(NEW_COLUMNS)}) select * from unnest(${arrayParameters(NEW_COLUMNS)})
   ) ${WAKE}`,
);

const wake = statement('events_outbox_wake', WAKE);

/**
 * Writes records in the transaction of the change that they describe: both commit or neither. The relay publishes them.
 * Records of one key are published in the order of their transactions if those lock the row that the key names.
 */
export async function addToOutbox(tx: Queryable, records: readonly OutboxRecord[]): Promise<void> {
  await run(tx, insert, arraysOf(NEW_COLUMNS, rowsOf(records)));
}

/** The rows of records, for a statement that inserts them with others; they belong to the current trace. */
export function rowsOf(records: readonly OutboxRecord[]): NewOutboxRow[] {
  return records.map(traced());
}

/** Like `addToOutbox`, but cheaper for thousands of records, which are created from the items while writing. */
export async function copyToOutbox<Item>(
  tx: PoolClient,
  items: readonly Item[],
  recordsOf: (item: Item) => readonly OutboxRecord[],
): Promise<void> {
  const rowOf = traced();
  await copyRows(tx, 'outbox', NEW_COLUMNS, items, (item) => recordsOf(item).map(rowOf));
  await run(tx, wake);
}

/** Converts records to rows, with the headers of the trace that the change belongs to. */
function traced(): (record: OutboxRecord) => NewOutboxRow {
  const trace: Record<string, string> = {};
  propagation.inject(context.active(), trace);
  return ({ topic, key, headers, value }) => ({ topic, key, headers: { ...trace, ...headers }, value });
}
