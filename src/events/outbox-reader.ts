import type { PoolClient } from 'pg';
import { first, promptStatement, run } from '../../common/postgres/sql.ts';
import { formatHoles, type Hole, parseHoles, within, without } from './outbox-holes.ts';

/** The most rows that one statement reads. */
export const BATCH = 1_000;
/** How often it is asked whether the writers of missing numbers are gone, in ms. */
const CLOSE_MS = 500;
/** Nothing here takes longer, in ms. */
const WITHIN_MS = 30_000;

export interface OutboxRow {
  readonly id: string;
  readonly slot: number;
  readonly topic: string;
  readonly key: string;
  readonly headers: Record<string, string>;
  readonly value: Buffer | null;
}

const COLUMNS = 'id, slot, topic, key, headers, value';

/** Index: outbox_id of each slot, whatever statistics say: the connection is set to `BY_INDEX`. */
const next = promptStatement<OutboxRow>(
  'events_outbox_next',
  `select ${COLUMNS} from outbox where id > $1 order by id limit ${BATCH}`,
  WITHIN_MS,
);

/** Index: outbox_id, once for each hole. */
const inHoles = promptStatement<OutboxRow>(
  'events_outbox_in_holes',
  `select o.* from unnest($1::int8multirange) as hole cross join lateral (
     select ${COLUMNS} from outbox where id >= lower(hole) and id < upper(hole) order by id limit ${BATCH}
   ) o order by o.id limit ${BATCH}`,
  WITHIN_MS,
);

/** Index: outbox_id, of one slot. */
const forget = promptStatement(
  'events_outbox_forget',
  'delete from outbox where slot = $1 and id = any($2::bigint[])',
  WITHIN_MS,
);

const position = promptStatement<{ place: string; last: string; holes: string }>(
  'events_outbox_position',
  'select ctid::text as place, last, holes::text as holes from outbox_position',
);

/**
 * By the row's place: while another transaction is open, as a backup's for an hour, every former version of the row stays
 * in its index, and a look-up would go through them all.
 */
const advance = promptStatement<{ place: string }>(
  'events_outbox_advance',
  'update outbox_position set last = $2, holes = $3::int8multirange where ctid = $1::tid returning ctid::text as place',
);

/** Whoever writes holds this lock from before it takes a number until it has committed or rolled back. */
const writers = promptStatement<{ writer: string }>(
  'events_outbox_writers',
  `select virtualtransaction as writer from pg_locks
   where relation = 'outbox'::regclass and mode = 'RowExclusiveLock' and database = (
     select oid from pg_database where datname = current_database()
   )`,
);

/**
 * The rows that wait, in the order of their numbers, for whoever leads. Numbers are given before transactions commit, so
 * a row may turn up below others that were read already: numbers that were missing are kept as holes, and looked for
 * until their writers are gone. Still each key keeps its order: a read finds all that was committed, and of two
 * transactions that change one key the second took its numbers after the first had committed.
 */
export class OutboxReader {
  readonly #client: PoolClient;
  readonly #keep: boolean;
  #place: string;
  /** Every number up to here was published, or is in a hole. */
  #last: bigint;
  #holes: readonly Hole[];
  /** A number, and who was writing after it had been given: when they are gone, nothing up to it turns up any more. */
  #closing: { readonly to: bigint; readonly writers: ReadonlySet<string> } | undefined;
  #asked = 0;

  private constructor(client: PoolClient, keep: boolean, at: { place: string; last: string; holes: string }) {
    this.#client = client;
    this.#keep = keep;
    this.#place = at.place;
    this.#last = BigInt(at.last);
    this.#holes = parseHoles(at.holes);
  }

  /** Goes on where the leader before stood. `keep`: whether rows stay in the outbox once they are published. */
  static async open(client: PoolClient, keep: boolean): Promise<OutboxReader> {
    const at = await first(client, position);
    if (!at) throw new Error('the outbox has no position');
    return new OutboxReader(client, keep, at);
  }

  /** The rows that `published` was not told of come again. */
  async next(): Promise<OutboxRow[]> {
    const closed = await this.#closed();
    // Before the holes: of two transactions that change one key, the one that is in a hole committed first.
    const rows = await run(this.#client, next, [String(this.#last)]);
    if (this.#holes.length === 0) return rows;
    const late = await run(this.#client, inHoles, [formatHoles(this.#holes)]);
    // There may be more of them, which come before all others.
    if (late.length === BATCH) return late;
    if (closed !== undefined) {
      const found = late.map(({ id }) => BigInt(id));
      this.#holes = this.#holes.flatMap((hole) => (hole.past <= closed + 1n ? within(hole, found) : [hole]));
    }
    return [...late, ...rows];
  }

  /** Moves on behind what `next` gave last, which the log has. */
  async published(rows: readonly OutboxRow[]): Promise<void> {
    const ids = rows.map(({ id }) => BigInt(id));
    const holes = this.#holes.flatMap((hole) => without(hole, ids));
    let last = this.#last;
    for (const id of ids) {
      if (id <= this.#last) continue;
      if (id > last + 1n) holes.push({ first: last + 1n, past: id });
      last = id;
    }
    if (!this.#keep) {
      for (const [slot, gone] of Map.groupBy(rows, (row) => row.slot)) {
        await run(this.#client, forget, [slot, gone.map(({ id }) => id)]);
      }
    }
    const moved = await first(this.#client, advance, [this.#place, String(last), formatHoles(holes)]);
    if (!moved) throw new Error('the position of the outbox was moved by somebody else');
    this.#place = moved.place;
    this.#last = last;
    this.#holes = holes;
  }

  /** Up to which number a read that begins now finds everything that ever turns up; asked for from time to time. */
  async #closed(): Promise<bigint | undefined> {
    if (this.#holes.length === 0 || performance.now() - this.#asked < CLOSE_MS) return undefined;
    this.#asked = performance.now();
    const now = new Set((await run(this.#client, writers)).map(({ writer }) => writer));
    const closing = this.#closing ?? { to: this.#last, writers: now };
    if (closing.writers.isDisjointFrom(now)) {
      this.#closing = undefined;
      return closing.to;
    }
    this.#closing = closing;
    return undefined;
  }
}
