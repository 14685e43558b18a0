const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Exits with code 1, as a process does that has nothing to finish yet. */
function exit(): void {
  process.exit(1);
}

/** Exits with the code that a shell reports for a process that a signal has ended. */
function exitOn(_signal: string, number: number): void {
  process.exit(128 + number);
}

/**
 * Until `stopRequest` is called, the process ends at once when it is asked to stop, or when the one that started it is
 * gone: it is still starting, and would take ports from the next start.
 */
export function stopAtOnce(): void {
  // All others end by themselves. The first process of a container ignores signals for which it has no handler.
  if (process.pid === 1) for (const signal of SIGNALS) process.once(signal, exitOn);
  const isChild = process.send !== undefined;
  // It may have gone while modules were being loaded.
  if (isChild && !process.connected) exit();
  process.once('disconnect', exit);
}

/**
 * Resolves with the reason when the process receives a signal to stop, or when its parent process is gone. Listens from
 * the call on.
 */
export function stopRequest(): Promise<string> {
  process.off('disconnect', exit);
  for (const signal of SIGNALS) process.off(signal, exitOn);
  return new Promise((resolve) => {
    for (const signal of SIGNALS) process.once(signal, () => resolve(signal));
    process.once('disconnect', () => resolve('the parent process is gone'));
  });
}
