import { promisify } from 'node:util';
import { constants, crc32, deflateRaw, type ZlibOptions } from 'node:zlib';
import { stringify } from 'csv-stringify/sync';

const deflate = promisify<Buffer, ZlibOptions, Buffer>(deflateRaw);

/** The text that is compressed at a time, in characters. */
const BLOCK_LENGTH = 64 * 1024;

/** Lines of CSV (RFC 4180), compressed (RFC 1951) as they are added: those of a batch can be more than 50 MB. */
export class Manifest {
  readonly #blocks: Buffer[] = [];
  #text = '';
  #size = 0;
  #crc = 0;

  /** Adds a line. Values that a spreadsheet would read as a formula are prefixed with an apostrophe. */
  async add(values: readonly string[]): Promise<void> {
    this.#text += stringify([[...values]], { record_delimiter: '\r\n', escape_formulas: true });
    if (this.#text.length >= BLOCK_LENGTH) await this.#compress(constants.Z_SYNC_FLUSH);
  }

  /** Returns the compressed file, and the size and CRC of its content. */
  async end(): Promise<{ blocks: readonly Buffer[]; size: number; crc: number }> {
    await this.#compress(constants.Z_FINISH);
    return { blocks: this.#blocks, size: this.#size, crc: this.#crc };
  }

  /** Each block ends at the boundary of a byte, and only the last one is final, so that together they are a stream. */
  async #compress(finishFlush: number): Promise<void> {
    const text = Buffer.from(this.#text);
    this.#text = '';
    this.#size += text.length;
    this.#crc = crc32(text, this.#crc);
    this.#blocks.push(await deflate(text, { finishFlush }));
  }
}
