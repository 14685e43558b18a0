/** Signals from a person, a closing terminal or a supervisor that end the run. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Ctrl-C in `npm start` arrives twice: from the terminal, which signals the whole foreground group, and from npm, which
 * forwards it. Signals within this time, in ms, count as one.
 */
const DEBOUNCE_MS = 500;

/** Abort signals: `stop` is aborted by the first signal to the process, `force` by the second. */
export interface Interruption {
  readonly stop: AbortSignal;
  readonly force: AbortSignal;
}

/** Listens for signals that end a run, until the process ends. */
export function listenForInterruption(): Interruption {
  const stop = new AbortController();
  const force = new AbortController();
  let firstAt = 0;
  for (const name of SIGNALS) {
    process.on(name, () => {
      if (stop.signal.aborted && performance.now() - firstAt > DEBOUNCE_MS) force.abort();
      if (stop.signal.aborted) return;
      firstAt = performance.now();
      stop.abort();
    });
  }
  return { stop: stop.signal, force: force.signal };
}
