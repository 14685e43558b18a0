import type { PoolClient } from 'pg';
import { COMMIT_WITHOUT_WAIT, first, promptStatement, run } from '../../common/postgres/sql.ts';
import { upToBytes } from '../../common/postgres/up-to-bytes.ts';
import { formatHoles, type Hole, parseHoles, within, without } from './outbox-holes.ts';

/** Maximum rows that one statement reads. */
export const BATCH = 1_000;
/** Maximum size of their values, except for the last row. */
const BATCH_BYTES = 8 * 1024 * 1024;
/** How often to check whether the transactions that hold missing ids have ended, in ms. */
export const CHECK_MS = 500;
/** Timeout of the reader's statements, in ms. */
const TIMEOUT_MS = 30_000;

export interface WaitingRow {
  readonly id: string;
  readonly slot: number;
  readonly topic: string;
  readonly key: string;
  readonly headers: Record<string, string>;
  readonly value: Buffer | null;
}

const COLUMNS = 'id, slot, topic, key, headers, value';

const firstOf = (rows: string) => upToBytes(rows, COLUMNS, 'id', BATCH_BYTES);

/** Index: outbox_id of each slot, whatever the statistics are: `BY_INDEX` is set on the connection. */
const next = promptStatement<WaitingRow>(
  'events_outbox_next',
  firstOf(`select ${COLUMNS} from outbox where id > $1 and topic <> all($2::text[]) order by id limit ${BATCH}`),
  TIMEOUT_MS,
);

/** Index: outbox_id, one range per hole. */
const inHoles = promptStatement<WaitingRow>(
  'events_outbox_in_holes',
  firstOf(`select o.* from unnest($1::int8multirange) as hole cross join lateral (
     select ${COLUMNS} from outbox
     where id >= lower(hole) and id < upper(hole) and topic <> all($2::text[]) order by id limit ${BATCH}
   ) o order by o.id limit ${BATCH}`),
  TIMEOUT_MS,
);

/** Index: outbox_id, of one slot. */
const remove = promptStatement(
  'events_outbox_delete',
  'delete from outbox where slot = $1 and id = any($2::bigint[])',
  TIMEOUT_MS,
);

const position = promptStatement<{ ctid: string; last: string; holes: string }>(
  'events_outbox_position',
  'select ctid::text as ctid, last, holes::text as holes from outbox_position',
);

/**
 * Addressed by ctid: while another transaction is open, for example an hour-long backup, all old versions of the row
 * stay in its index and an index scan would visit them all. If its commit is lost, rows are published again.
 */
const advance = promptStatement<{ ctid: string }>(
  'events_outbox_advance',
  `update outbox_position set last = $2, holes = $3::int8multirange where ctid = $1::tid
   returning ctid::text as ctid, ${COMMIT_WITHOUT_WAIT}`,
);

/**
 * A transaction that inserts into the outbox holds this lock from before it takes an id until it commits or rolls back.
 */
const writers = promptStatement<{ writer: string }>(
  'events_outbox_writers',
  `select virtualtransaction as writer from pg_locks
   where relation = 'outbox'::regclass and mode = 'RowExclusiveLock' and database = (
     select oid from pg_database where datname = current_database()
   )`,
);

/**
 * Reads the waiting rows in the order of their ids, for the leader. Ids are assigned before transactions commit, so a
 * row may appear below others that were already read: missing ids are remembered as holes and looked up until the
 * transactions that may hold them have ended. Rows of a topic that the log refuses are in holes too, once rows after
 * them are published. Each key still keeps its order: a read sees everything committed, and of two transactions that
 * change one key the second takes its ids after the first has committed.
 */
export class OutboxReader {
  readonly #client: PoolClient;
  readonly #keep: boolean;
  #ctid: string;
  /** Every id up to here was published or is in a hole. */
  #last: bigint;
  #holes: readonly Hole[];
  /** An id and the transactions that were writing after it was assigned: once they end, no id up to it can appear. */
  #pending: { readonly to: bigint; readonly writers: ReadonlySet<string> } | undefined;
  #checkedAt = 0;

  private constructor(client: PoolClient, keep: boolean, position: { ctid: string; last: string; holes: string }) {
    this.#client = client;
    this.#keep = keep;
    this.#ctid = position.ctid;
    this.#last = BigInt(position.last);
    this.#holes = parseHoles(position.holes);
  }

  /** Continues at the previous leader's position. `keep`: whether published rows stay in the outbox. */
  static async open(client: PoolClient, keep: boolean): Promise<OutboxReader> {
    const row = await first(client, position);
    if (!row) throw new Error('the outbox has no position');
    return new OutboxReader(client, keep, row);
  }

  /**
   * Reads the next rows, without those of the topics in `except`; rows that are not passed to `published` are returned
   * again.
   */
  async next(except: readonly string[] = []): Promise<WaitingRow[]> {
    // A hole in which nothing is found may contain rows of topics that were left out.
    const settled = except.length === 0 ? await this.#settledUpTo() : undefined;
    // Read before the holes: of two transactions that change one key, the one in a hole committed first.
    const rows = await run(this.#client, next, [String(this.#last), except]);
    if (this.#holes.length === 0) return rows;
    const late = await run(this.#client, inHoles, [formatHoles(this.#holes), except]);
    // There may be more late rows, which come before all others.
    if (isFull(late)) return late;
    if (settled !== undefined) {
      const found = late.map(({ id }) => BigInt(id));
      this.#holes = this.#holes.flatMap((hole) => (hole.end <= settled + 1n ? within(hole, found) : [hole]));
    }
    return [...late, ...rows];
  }

  /** If it isn't 0, ids are missing that may still appear, and `next` must be called at least every `CHECK_MS`. */
  get holes(): number {
    return this.#holes.length;
  }

  /** Advances the position past rows from `next` that have been published. `keep`: whether they stay in the outbox. */
  async published(rows: readonly WaitingRow[], keep = this.#keep): Promise<void> {
    const ids = rows.map(({ id }) => BigInt(id));
    const holes = this.#holes.flatMap((hole) => without(hole, ids));
    let last = this.#last;
    for (const id of ids) {
      if (id <= this.#last) continue;
      if (id > last + 1n) holes.push({ first: last + 1n, end: id });
      last = id;
    }
    if (!keep) {
      for (const [slot, published] of Map.groupBy(rows, (row) => row.slot)) {
        await run(this.#client, remove, [slot, published.map(({ id }) => id)]);
      }
    }
    const updated = await first(this.#client, advance, [this.#ctid, String(last), formatHoles(holes)]);
    if (!updated) throw new Error('another process has changed the position of the outbox');
    this.#ctid = updated.ctid;
    this.#last = last;
    this.#holes = holes;
  }

  /** The id up to which no further row can appear after a read that starts now; checked every `CHECK_MS`. */
  async #settledUpTo(): Promise<bigint | undefined> {
    if (this.#holes.length === 0 || performance.now() - this.#checkedAt < CHECK_MS) return undefined;
    this.#checkedAt = performance.now();
    const now = new Set((await run(this.#client, writers)).map(({ writer }) => writer));
    const pending = this.#pending ?? { to: this.#last, writers: now };
    if (pending.writers.isDisjointFrom(now)) {
      this.#pending = undefined;
      return pending.to;
    }
    this.#pending = pending;
    return undefined;
  }
}

/** Whether a statement may have left out rows that follow these. */
function isFull(rows: readonly WaitingRow[]): boolean {
  return rows.length === BATCH || rows.reduce((bytes, { value }) => bytes + (value?.length ?? 0), 0) >= BATCH_BYTES;
}
