/**
 * Checks whether the route table in a folder can be read completely. Exits with 0 if it can; with `DAMAGED`, or by one
 * of `CRASH_SIGNALS`, if it can't. It is a separate process because LMDB trusts what it maps: corrupt pages make it
 * abort, or worse.
 */
import { writeSync } from 'node:fs';
import { open } from 'lmdb';
import { DAMAGED } from './damage.ts';

/** The range of LMDB's own error codes, about its file; others are the system's: no space, no permission. */
const MIN_LMDB_ERROR = -30_999;
const MAX_LMDB_ERROR = -30_000;

// From here on only the table can make this process die.
writeSync(1, 'begun');
process.exit(check(process.argv[2] ?? ''));

function check(path: string): number {
  try {
    const store = open<Buffer, string>({ path, encoding: 'binary', noSubdir: false });
    const { entryCount } = store.getStats() as { entryCount: number };
    // Reading a million entries takes 0.2 s.
    return store.getCount() === entryCount ? 0 : DAMAGED;
  } catch (error) {
    const { code } = error as { code?: unknown };
    return typeof code === 'number' && code >= MIN_LMDB_ERROR && code <= MAX_LMDB_ERROR ? DAMAGED : 1;
  }
}
