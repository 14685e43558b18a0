/**
 * Whether the route table in a folder can be read to its end: ends with 0 when it can, with `DAMAGED` when it can't, or
 * by a signal. A process of its own because LMDB trusts what it maps: on pages of nonsense it aborts, or worse.
 */
import { open } from 'lmdb';
import { DAMAGED } from './damage.ts';

/** Errors of LMDB about its file; the others are the system's: no space, no permission. */
const LEAST_ERROR = -30_999;
const MOST_ERROR = -30_000;

process.exit(check(process.argv[2] ?? ''));

function check(path: string): number {
  try {
    const store = open<Buffer, string>({ path, encoding: 'binary', noSubdir: false });
    const { entryCount } = store.getStats() as { entryCount: number };
    // Of a million, in 0.2 s.
    return store.getCount() === entryCount ? 0 : DAMAGED;
  } catch (error) {
    const { code } = error as { code?: unknown };
    return typeof code === 'number' && code >= LEAST_ERROR && code <= MOST_ERROR ? DAMAGED : 1;
  }
}
