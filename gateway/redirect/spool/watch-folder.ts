import { type FSWatcher, watch } from 'node:fs';

/** Reports changes in a folder, such as writes to a file in it. */
export interface WatchedFolder extends Disposable {
  /** Resolves at the next change, at once if there was one since the last call or the start, and after `mostMs`. */
  changed(mostMs: number, signal: AbortSignal): Promise<void>;
}

/** Watches a folder; undefined if it can't be watched: it is missing, or the system has no watches left or supports none. */
export function watchFolder(folder: string): WatchedFolder | undefined {
  let hasChanged = false;
  let wake = () => {};
  const change = () => {
    hasChanged = true;
    wake();
  };
  let watcher: FSWatcher;
  try {
    watcher = watch(folder, { persistent: false }, change);
  } catch {
    return undefined;
  }
  watcher.on('error', change);
  return {
    async changed(mostMs, signal) {
      if (!hasChanged && !signal.aborted) {
        const waited = Promise.withResolvers<void>();
        const timer = setTimeout(waited.resolve, mostMs);
        wake = waited.resolve;
        signal.addEventListener('abort', waited.resolve as () => void);
        await waited.promise;
        signal.removeEventListener('abort', waited.resolve as () => void);
        clearTimeout(timer);
      }
      hasChanged = false;
    },
    [Symbol.dispose]: () => watcher.close(),
  };
}
