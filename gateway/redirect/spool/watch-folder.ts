import { type FSWatcher, watch } from 'node:fs';
import { createWakeup } from '../../../common/runtime/wakeup.ts';

/** Reports changes in a folder, such as writes to a file in it. */
export interface WatchedFolder extends Disposable {
  /**
   * Resolves at the next change, at once if there was one since the last call or the start, and when `signal` aborts.
   */
  changed(signal: AbortSignal): Promise<void>;
}

/**
 * Watches a folder; undefined if it can't be watched: it is missing, or the system has no watches left or supports
 * none. `longestMs`: the longest wait for a change, in ms.
 */
export function watchFolder(folder: string, longestMs: number): WatchedFolder | undefined {
  const wakeup = createWakeup(() => longestMs);
  let watcher: FSWatcher;
  try {
    watcher = watch(folder, { persistent: false }, wakeup.notify);
  } catch {
    return undefined;
  }
  watcher.on('error', wakeup.notify);
  return {
    async changed(signal) {
      if (signal.aborted) return;
      signal.addEventListener('abort', wakeup.notify);
      await wakeup.wait();
      signal.removeEventListener('abort', wakeup.notify);
    },
    [Symbol.dispose]: () => watcher.close(),
  };
}
