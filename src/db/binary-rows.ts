import { pipeline } from 'node:stream/promises';
import { setImmediate } from 'node:timers/promises';
import type { PoolClient } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { writeUuid } from '../../common/contract/ids.ts';
import { DAY_MS } from '../../common/runtime/durations.ts';

/** The epoch of Postgres's binary times. */
const EPOCH_MS = Date.UTC(2000, 0, 1);

/** "PGCOPY" and bytes that a text-mode transport would change; then no flags and no extension. */
const HEADER = Buffer.from(`5047434f50590aff0d0a00${'00'.repeat(8)}`, 'hex');

/** The size of the chunks that are sent: some hundred rows. */
const CHUNK_BYTES = 64 * 1024;

/**
 * How long rows are written before the event loop may run other tasks, in ms: several copies may be running in turns.
 */
const YIELD_INTERVAL_MS = 20;

/** Extra space in a chunk's buffer for its last row, which rarely needs more. */
const SPARE_BYTES = 2 * 1024;

/** The OID of the type text, and the version byte that begins a jsonb. */
const TEXT_OID = 25;
const JSONB_VERSION = 1;

/**
 * Rows in the binary format of `copy`, so that Postgres does not have to parse text: parsing a time takes it longer
 * than adding the row to an index. Each field is written in its column's type, in the order of the columns.
 */
export class BinaryRows {
  #bytes: Buffer;
  #end: number;
  /** The last date: consecutive rows mostly have the same one. */
  #lastDay = '';
  #lastDayNumber = 0;

  /**
   * Copies a row for each item into a table, named with its columns. Rows are sent while the next ones are written, so
   * that Postgres and this process work in parallel, and the event loop can run other tasks. No other statement may be
   * running on the connection.
   */
  static copyEach<Item>(
    tx: PoolClient,
    table: string,
    items: readonly Item[],
    write: (rows: BinaryRows, item: Item) => void,
  ): Promise<void> {
    if (items.length === 0) return Promise.resolve();
    async function* chunks(): AsyncGenerator<Buffer> {
      const rows = new BinaryRows();
      let since = performance.now();
      for (const item of items) {
        write(rows, item);
        if (rows.#end < CHUNK_BYTES) continue;
        yield rows.#takeChunk();
        if (performance.now() - since < YIELD_INTERVAL_MS) continue;
        await setImmediate();
        since = performance.now();
      }
      yield rows.#lastChunk();
    }
    return copyChunks(tx, table, chunks());
  }

  private constructor() {
    this.#bytes = Buffer.allocUnsafe(CHUNK_BYTES + SPARE_BYTES);
    this.#end = HEADER.copy(this.#bytes);
  }

  /** Begins a row with this number of fields. */
  row(fields: number): void {
    this.#ensureRoom(2);
    this.#end = this.#bytes.writeInt16BE(fields, this.#end);
  }

  null(): void {
    this.#ensureRoom(4);
    this.#end = this.#bytes.writeInt32BE(-1, this.#end);
  }

  uuid(value: string | null): void {
    if (value === null) {
      this.null();
      return;
    }
    const at = this.#field(16);
    writeUuid(value, this.#bytes, at);
  }

  /** A timestamptz, in ms since 1970. */
  time(value: number): void {
    const at = this.#field(8);
    const microseconds = (value - EPOCH_MS) * 1_000;
    this.#bytes.writeInt32BE(Math.floor(microseconds / 2 ** 32), at);
    this.#bytes.writeUInt32BE(microseconds >>> 0, at + 4);
  }

  /** A date, `YYYY-MM-DD`. */
  day(value: string): void {
    const at = this.#field(4);
    if (value !== this.#lastDay) {
      this.#lastDay = value;
      this.#lastDayNumber = (Date.parse(value) - EPOCH_MS) / DAY_MS;
    }
    this.#bytes.writeInt32BE(this.#lastDayNumber, at);
  }

  /** A text, or a label of an enum. */
  text(value: string | null): void {
    if (value === null) {
      this.null();
      return;
    }
    this.#ensureRoom(4 + value.length * 3);
    const length = this.#bytes.write(value, this.#end + 4);
    this.#bytes.writeInt32BE(length, this.#end);
    this.#end += 4 + length;
  }

  bytes(value: Uint8Array | null): void {
    if (value === null) {
      this.null();
      return;
    }
    const at = this.#field(value.length);
    this.#bytes.set(value, at);
  }

  /** A jsonb, given as JSON text. */
  json(value: string): void {
    this.#ensureRoom(5 + value.length * 3);
    const length = this.#bytes.write(value, this.#end + 5);
    this.#bytes.writeInt32BE(1 + length, this.#end);
    this.#bytes[this.#end + 4] = JSONB_VERSION;
    this.#end += 5 + length;
  }

  /** An array of texts. */
  texts(values: readonly string[]): void {
    const from = this.#field(values.length === 0 ? 12 : 20);
    const { length } = values;
    this.#bytes.writeInt32BE(length === 0 ? 0 : 1, from);
    this.#bytes.writeInt32BE(0, from + 4);
    this.#bytes.writeInt32BE(TEXT_OID, from + 8);
    if (length === 0) return;
    this.#bytes.writeInt32BE(length, from + 12);
    this.#bytes.writeInt32BE(1, from + 16);
    for (const value of values) this.text(value);
    this.#bytes.writeInt32BE(this.#end - from, from - 4);
  }

  integer(value: number): void {
    const at = this.#field(4);
    this.#bytes.writeInt32BE(value, at);
  }

  smallint(value: number): void {
    const at = this.#field(2);
    this.#bytes.writeInt16BE(value, at);
  }

  bigint(value: bigint | number): void {
    const at = this.#field(8);
    if (typeof value === 'bigint') {
      this.#bytes.writeBigInt64BE(value, at);
    } else {
      this.#bytes.writeInt32BE(Math.floor(value / 2 ** 32), at);
      this.#bytes.writeUInt32BE(value >>> 0, at + 4);
    }
  }

  /**
   * Takes what has been written so far. The next chunk gets a new buffer, since this one may not have been sent yet.
   */
  #takeChunk(): Buffer {
    const chunk = this.#bytes.subarray(0, this.#end);
    this.#bytes = Buffer.allocUnsafe(this.#bytes.length);
    this.#end = 0;
    return chunk;
  }

  #lastChunk(): Buffer {
    this.row(-1);
    return this.#takeChunk();
  }

  /** Begins a field of this many bytes and returns its offset in `#bytes`, which may be replaced. */
  #field(bytes: number): number {
    this.#ensureRoom(4 + bytes);
    const at = this.#bytes.writeInt32BE(bytes, this.#end);
    this.#end = at + bytes;
    return at;
  }

  #ensureRoom(bytes: number): void {
    if (this.#end + bytes > this.#bytes.length) {
      this.#bytes = Buffer.concat([this.#bytes], this.#bytes.length * 2 + bytes);
    }
  }
}

function copyChunks(tx: PoolClient, table: string, chunks: AsyncIterable<Buffer>): Promise<void> {
  return pipeline(chunks, tx.query(copyFrom(`copy ${table} from stdin (format binary)`)));
}
