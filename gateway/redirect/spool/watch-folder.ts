import { type FSWatcher, watch } from 'node:fs';
import { createBell } from '../../../common/runtime/bell.ts';

/** Reports changes in a folder, such as writes to a file in it. */
export interface WatchedFolder extends Disposable {
  /** Resolves at the next change, at once if there was one since the last call or the start, and when `signal` aborts. */
  changed(signal: AbortSignal): Promise<void>;
}

/**
 * Watches a folder; undefined if it can't be watched: it is missing, or the system has no watches left or supports none.
 * `longestMs`: the longest wait for a change, in ms.
 */
export function watchFolder(folder: string, longestMs: number): WatchedFolder | undefined {
  const bell = createBell(() => longestMs);
  let watcher: FSWatcher;
  try {
    watcher = watch(folder, { persistent: false }, bell.ring);
  } catch {
    return undefined;
  }
  watcher.on('error', bell.ring);
  return {
    async changed(signal) {
      if (signal.aborted) return;
      signal.addEventListener('abort', bell.ring);
      await bell.wait();
      signal.removeEventListener('abort', bell.ring);
    },
    [Symbol.dispose]: () => watcher.close(),
  };
}
