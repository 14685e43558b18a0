import { pipeline } from 'node:stream/promises';
import { setImmediate } from 'node:timers/promises';
import type { PoolClient } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { writeUuid } from '../../common/contract/ids.ts';

/** Postgres counts time from here. */
const EPOCH_MS = Date.UTC(2000, 0, 1);
const DAY_MS = 86_400_000;

/** "PGCOPY" and bytes that a careless transport would change; then no flags and no extension. */
const HEADER = Buffer.from(`5047434f50590aff0d0a00${'00'.repeat(8)}`, 'hex');

/** How many bytes are sent at once: some hundred rows. */
const PART_BYTES = 64 * 1024;
/** How long rows are written before others get a turn of the event loop, in ms: each turn may be another's long one. */
const TURN_MS = 20;
/** What a row that ends a part is expected to take at most. */
const ROW_BYTES = 2 * 1024;

/** What Postgres calls a text, and how it begins a jsonb. */
const TEXT_OID = 25;
const JSONB_VERSION = 1;

/**
 * Rows in the binary format of `copy`, which spares Postgres to parse texts: reading a time as text takes it longer than
 * putting the row into an index. Each field is written in its column's type, in the order of the columns.
 */
export class BinaryRows {
  #bytes: Buffer;
  #end: number;
  /** Rows of one day follow each other. */
  #lastDay = '';
  #lastDayNumber = 0;

  /**
   * Copies a row for each item into a table, named with its columns, while the rows of the next items are being written:
   * Postgres and this process then work at once, and others get their turns of the event loop. No other statement may
   * be under way.
   */
  static copyEach<Item>(
    tx: PoolClient,
    table: string,
    items: readonly Item[],
    write: (rows: BinaryRows, item: Item) => void,
  ): Promise<void> {
    if (items.length === 0) return Promise.resolve();
    async function* parts(): AsyncGenerator<Buffer> {
      const rows = new BinaryRows();
      let since = performance.now();
      for (const item of items) {
        write(rows, item);
        if (rows.#end < PART_BYTES) continue;
        yield rows.#part();
        if (performance.now() - since < TURN_MS) continue;
        await setImmediate();
        since = performance.now();
      }
      yield rows.#lastPart();
    }
    return copyParts(tx, table, parts());
  }

  private constructor() {
    this.#bytes = Buffer.allocUnsafe(PART_BYTES + ROW_BYTES);
    this.#end = HEADER.copy(this.#bytes);
  }

  /** Begins a row of so many fields. */
  row(fields: number): void {
    this.#room(2);
    this.#end = this.#bytes.writeInt16BE(fields, this.#end);
  }

  null(): void {
    this.#room(4);
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
    this.#room(4 + value.length * 3);
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

  /** A jsonb, of its text. */
  json(value: string): void {
    this.#room(5 + value.length * 3);
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

  /** What was written so far; the next goes into memory of its own, since this may not have been sent yet. */
  #part(): Buffer {
    const part = this.#bytes.subarray(0, this.#end);
    this.#bytes = Buffer.allocUnsafe(this.#bytes.length);
    this.#end = 0;
    return part;
  }

  #lastPart(): Buffer {
    this.row(-1);
    return this.#part();
  }

  /** Begins a field of so many bytes; gives where they go. May change `#bytes`. */
  #field(bytes: number): number {
    this.#room(4 + bytes);
    const at = this.#bytes.writeInt32BE(bytes, this.#end);
    this.#end = at + bytes;
    return at;
  }

  #room(bytes: number): void {
    if (this.#end + bytes > this.#bytes.length) {
      this.#bytes = Buffer.concat([this.#bytes], this.#bytes.length * 2 + bytes);
    }
  }
}

function copyParts(tx: PoolClient, table: string, parts: AsyncIterable<Buffer>): Promise<void> {
  return pipeline(parts, tx.query(copyFrom(`copy ${table} from stdin (format binary)`)));
}
