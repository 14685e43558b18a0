import { type ContextValues, createContextKey, type Interceptor } from '@connectrpc/connect';

/** The turn of a call with a large message, of which the servers let each caller have only a few. */
interface Turn {
  /** From now on the turn outlasts a caller that leaves: what the call has begun still occupies Postgres. */
  begin(): void;
  end(): void;
}

const turnKey = createContextKey<Turn | undefined>(undefined, { description: 'turn of a large message' });

/** Resolves once the turn of the call with these values ends, or when `signal` aborts before its method is called. */
export function untilEndOfTurn(values: ContextValues, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => resolve();
    values.set(turnKey, { begin: () => signal.removeEventListener('abort', end), end });
    if (signal.aborted) end();
    else signal.addEventListener('abort', end);
  });
}

/** Ends the turn of a call before its answer: what it had to do with its message is done, and it only waits. */
export function endTurn({ values }: { readonly values: ContextValues }): void {
  values.get(turnKey)?.end();
}

/** Ends the turn of a call once its method has an answer, whether or not the caller reads that. */
export const endTurns: Interceptor = (next) => (request) => {
  const turn = request.contextValues.get(turnKey);
  if (!turn) return next(request);
  turn.begin();
  return next(request).finally(turn.end);
};
