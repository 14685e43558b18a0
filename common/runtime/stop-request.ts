/**
 * Resolves with the reason when a signal asks the process to stop, or when the process that started it is gone. Listens
 * from the call on.
 */
export function stopRequest(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => resolve(signal));
    process.once('disconnect', () => resolve('the parent process is gone'));
  });
}
