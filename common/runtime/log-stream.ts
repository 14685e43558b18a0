import { EventEmitter } from 'node:events';
import { write, writeSync } from 'node:fs';

const STDOUT = 1;

/** How long after a failed write it is tried again, in ms. */
const RETRY_MS = 100;

/** The maximum length of the lines that wait, in characters: some thousand lines. */
const MAX_WAITING = 4 * 1024 * 1024;

/** How long an exiting process waits for a reader of its log, and between two attempts, in ms. */
const FLUSH_MS = 1_000;
const ATTEMPT_MS = 10;

const NOTHING = Buffer.alloc(0);

/**
 * Standard output, to which pino writes its lines. While it can't be written, for example because the disk is full,
 * lines wait in memory, and those that don't fit are dropped. pino's own stream fails then, which ended the process,
 * with the scans that waited in its memory for the same disk; or it repeated its last write for ever, so that the
 * process did not exit. Emits `drain` when nothing waits.
 */
export class LogStream extends EventEmitter {
  /** The rest of a write that was partial or failed. */
  #rest: Buffer = NOTHING;
  #waiting = '';
  #isWriting = false;
  #retry: NodeJS.Timeout | undefined;

  constructor() {
    super();
    process.once('exit', () => this.flushSync());
  }

  write(lines: string): void {
    if (this.#waiting.length + lines.length > MAX_WAITING) return;
    this.#waiting += lines;
    if (!this.#isWriting && !this.#retry) this.#writeNext();
  }

  #writeNext(): void {
    this.#isWriting = true;
    const bytes = this.#take();
    write(STDOUT, bytes, (error, written) => {
      this.#isWriting = false;
      if (error) {
        this.#rest = bytes;
        this.#retry = setTimeout(() => {
          this.#retry = undefined;
          this.#writeNext();
        }, RETRY_MS).unref();
        return;
      }
      this.#rest = bytes.subarray(written);
      if (this.#rest.length > 0 || this.#waiting !== '') this.#writeNext();
      else this.emit('drain');
    });
  }

  /** Writes what waits before the process exits, except for what is being written. pino calls it after a fatal line. */
  flushSync(): void {
    const end = performance.now() + FLUSH_MS;
    let bytes = this.#take();
    while (bytes.length > 0) {
      try {
        bytes = bytes.subarray(writeSync(STDOUT, bytes));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || performance.now() > end) break;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ATTEMPT_MS);
      }
    }
    this.#rest = bytes;
  }

  #take(): Buffer {
    const bytes = Buffer.concat([this.#rest, Buffer.from(this.#waiting)]);
    this.#rest = NOTHING;
    this.#waiting = '';
    return bytes;
  }
}
