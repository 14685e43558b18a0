import type { PoolClient } from 'pg';
import { promptStatement, run } from '../db/sql.ts';

/** The most rows at a time. */
export const BATCH = 1_000;
/** So many rows gone, it is worth to ask how far nothing can come any more. */
const GONE = 5_000;
/** Nothing here takes longer, also where a read goes through millions of rows that are gone, in ms. */
const WITHIN_MS = 30_000;

export interface OutboxRow {
  readonly id: string;
  readonly topic: string;
  readonly key: string;
  readonly headers: Record<string, string>;
  readonly value: Buffer | null;
}

/** Index: outbox_pkey, whatever statistics say: the connection is set to `BY_INDEX`. */
const next = promptStatement<OutboxRow>(
  'events_outbox_next',
  `select id, topic, key, headers, value from outbox where id > $1 order by id limit ${BATCH}`,
  WITHIN_MS,
);

/** Index: outbox_pkey. */
const forget = promptStatement('events_outbox_forget', 'delete from outbox where id = any($1::bigint[])', WITHIN_MS);

const lastNumber = promptStatement<{ id: string }>('events_outbox_last', 'select last_value as id from outbox_id_seq');

/** Whoever writes holds this lock from before it takes a number until it has committed or given up. */
const writers = promptStatement<{ writer: string }>(
  'events_outbox_writers',
  `select virtualtransaction as writer from pg_locks
   where relation = 'outbox'::regclass and mode = 'RowExclusiveLock' and database = (
     select oid from pg_database where datname = current_database()
   )`,
);

/**
 * The rows that wait, in the order of their numbers, for whoever leads. Numbers are given before transactions commit, so
 * a row may turn up before ones that were there. Still each key keeps its order: a read finds all that was committed, and
 * of two transactions that tell of one key the second took its numbers when the first had committed.
 */
export class OutboxReader {
  /**
   * Reads start behind it. While any transaction is open (a backup's, for an hour), all that was deleted since is still
   * in the index, and every read would go through it.
   */
  #floor = 0n;
  /** Up to here every number was committed or given up, so nothing turns up any more. */
  #closed = 0n;
  /** A number, and who was writing after it had been given: when they are gone, everything up to it is closed. */
  #closing: { readonly to: bigint; readonly writers: ReadonlySet<string> } | undefined;
  #gone = 0;
  readonly #client: PoolClient;

  constructor(client: PoolClient) {
    this.#client = client;
  }

  /** Those that are not forgotten come again. */
  async next(): Promise<OutboxRow[]> {
    await this.#close();
    return run(this.#client, next, [String(this.#floor)]);
  }

  /** Forgets what `next` gave last. */
  async forget(rows: readonly OutboxRow[]): Promise<void> {
    const ids = rows.map(({ id }) => id);
    await run(this.#client, forget, [ids]);
    this.#gone += ids.length;
    const last = BigInt(ids.at(-1) ?? 0);
    this.#floor = last < this.#closed ? last : this.#closed;
  }

  async #close(): Promise<void> {
    if (this.#closing === undefined) {
      if (this.#gone < GONE) return;
      this.#gone = 0;
      // In this order: who begins to write in between takes higher numbers.
      const [last] = await run(this.#client, lastNumber);
      this.#closing = { to: BigInt(last?.id ?? 0), writers: await this.#writers() };
    }
    const { to, writers: before } = this.#closing;
    if (before.size > 0 && !before.isDisjointFrom(await this.#writers())) return;
    this.#closed = to;
    this.#closing = undefined;
  }

  async #writers(): Promise<Set<string>> {
    return new Set((await run(this.#client, writers)).map(({ writer }) => writer));
  }
}
