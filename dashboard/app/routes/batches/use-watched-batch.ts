import { createClient } from '@connectrpc/connect';
import { useTransport } from '@connectrpc/connect-query';
import { useEffect, useState } from 'react';
import { type Batch, BatchesService, BatchStatus } from '../../../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { checkSession, isPermanent } from '../../data/queries.ts';

/** The most between two tries to continue a stream that broke, in ms. */
const MAX_DELAY_MS = 8_000;

export interface WatchedBatch {
  /** Undefined until it has been loaded. */
  readonly batch?: Batch | undefined;
  /** Why it cannot be shown. */
  readonly error?: unknown;
  readonly isReconnecting: boolean;
}

/** A batch with its progress, as the core reports it; a stream that breaks, or a core that dies, is tried again. */
export function useWatchedBatch(id: string): WatchedBatch {
  const transport = useTransport();
  const [watched, setWatched] = useState<WatchedBatch>({ isReconnecting: false });
  useEffect(() => {
    const closed = new AbortController();
    const { signal } = closed;
    const client = createClient(BatchesService, transport);
    async function watch() {
      for (let failures = 0; !signal.aborted; failures++) {
        try {
          for await (const { batch } of client.watchBatch({ id }, { signal })) {
            failures = 0;
            setWatched({ batch, isReconnecting: false });
            if (batch?.status === BatchStatus.COMPLETED) return;
          }
        } catch (error) {
          if (signal.aborted) return;
          checkSession(error);
          if (isPermanent(error)) {
            setWatched(({ batch }) => ({ batch, error, isReconnecting: false }));
            return;
          }
          setWatched(({ batch }) => ({ batch, isReconnecting: true }));
        }
        await delay(Math.min(MAX_DELAY_MS, 500 * 2 ** failures), signal);
      }
    }
    setWatched({ isReconnecting: false });
    void watch();
    return () => closed.abort();
  }, [id, transport]);
  return watched;
}

/** Waits, or until `signal` aborts. */
function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
