import { type ContextValues, createContextKey, type Interceptor } from '@connectrpc/connect';

/**
 * What a call with a large message occupies: the servers read only a few of them at a time, and of each caller even
 * fewer.
 */
interface Slot {
  /** From now on the slot stays occupied if the caller leaves: what the call has begun still occupies Postgres. */
  keep(): void;
  release(): void;
}

const slotKey = createContextKey<Slot | undefined>(undefined, { description: 'slot of a large message' });

/**
 * Resolves once the slot of the call with these values is released, or when `signal` aborts before its method is
 * called.
 */
export function untilSlotReleased(values: ContextValues, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const release = () => resolve();
    values.set(slotKey, { keep: () => signal.removeEventListener('abort', release), release });
    if (signal.aborted) release();
    else signal.addEventListener('abort', release);
  });
}

/** Releases the slot of a call before its answer: what it had to do with its message is done, and it only waits. */
export function releaseSlot({ values }: { readonly values: ContextValues }): void {
  values.get(slotKey)?.release();
}

/** Releases the slot of a call once its method has an answer, whether or not the caller reads that. */
export const releaseSlots: Interceptor = (next) => (request) => {
  const slot = request.contextValues.get(slotKey);
  if (!slot) return next(request);
  slot.keep();
  return next(request).finally(slot.release);
};
