/**
 * Resolves with the reason when the process receives a signal to stop, or when its parent process is gone. Listens from
 * the call on.
 */
export function stopRequest(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => resolve(signal));
    process.once('disconnect', () => resolve('the parent process is gone'));
  });
}
