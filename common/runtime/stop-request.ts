/** Exits with code 1, as a process does that has nothing to finish yet. */
function exit(): void {
  process.exit(1);
}

/**
 * Until `stopRequest` is called, exits at once when the process that started this one is gone: it is still starting,
 * and would take ports from the next start. Signals to stop do the same without a handler.
 */
export function exitWithParent(): void {
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
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => resolve(signal));
    process.once('disconnect', () => resolve('the parent process is gone'));
  });
}
