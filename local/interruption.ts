/** A person, a terminal that closes, a supervisor: whoever asks the run to end. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Ctrl-C in `npm start` arrives twice: from the terminal, which tells everybody in the foreground, and from npm, which
 * passes on what it gets. What comes within this time, in ms, is one wish.
 */
const SAME_WISH_MS = 500;

/** The signals asked for so far: `stop` is aborted by the first, `force` by the second. */
export interface Interruption {
  readonly stop: AbortSignal;
  readonly force: AbortSignal;
}

/** Listens for the signals that end a run, from now on until the process ends. */
export function listenForInterruption(): Interruption {
  const stop = new AbortController();
  const force = new AbortController();
  let firstAt = 0;
  for (const name of SIGNALS) {
    process.on(name, () => {
      if (stop.signal.aborted && performance.now() - firstAt > SAME_WISH_MS) force.abort();
      if (stop.signal.aborted) return;
      firstAt = performance.now();
      stop.abort();
    });
  }
  return { stop: stop.signal, force: force.signal };
}
