import { closeSync, fstatSync, openSync, writeSync } from 'node:fs';

/** The smallest extension of the file, in bytes: one takes 0.3 ms, and the file rarely needs another. */
const EXTENSION = 1024 * 1024;

/**
 * Space at the end of LMDB's data file that the file system has already allocated. LMDB must never meet a full disk:
 * after a write that fails, version 3.5.6 of the package formats its error message into 100 bytes, which are too few,
 * and so overwrites the heap (`mdb_page_flush` in mdb.c). The process then ended at some later time, by SIGABRT or
 * SIGSEGV.
 */
export class ReservedSpace {
  readonly #descriptor: number;

  /** `path`: of the data file, which exists. */
  constructor(path: string) {
    // What is appended never overwrites what another process has written to the end of the file meanwhile.
    this.#descriptor = openSync(path, 'a');
  }

  /**
   * Extends the file to at least `size` bytes. Throws the error of the file system if it can't: ENOSPC, or EDQUOT for a
   * quota. A file system that copies on write (btrfs, ZFS) may still have no space for the pages themselves.
   */
  ensure(size: number): void {
    const missing = size - fstatSync(this.#descriptor).size;
    if (missing <= 0) return;
    const zeros = Buffer.alloc(Math.max(missing, EXTENSION));
    // A write to a disk that is nearly full may be partial; the next one fails.
    for (let written = 0; written < missing; ) written += writeSync(this.#descriptor, zeros, written);
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}
