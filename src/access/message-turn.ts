import { type ContextValues, createContextKey } from '@connectrpc/connect';

/** Ends the turn of a call with a large message, of which the servers let each caller have only a few. */
const endKey = createContextKey<() => void>(() => undefined, { description: 'end of the turn of a large message' });

/** Resolves once `endTurn` is called for the call with these values, or when `signal` aborts, as it does after the answer. */
export function untilEndOfTurn(values: ContextValues, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    values.set(endKey, resolve);
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Ends the turn of a call before its answer: what it had to do with its message is done, and it only waits. */
export function endTurn({ values }: { readonly values: ContextValues }): void {
  values.get(endKey)();
}
