import { failure } from '../contract/errors.ts';
import type { Log, LogRecord, Positions } from './log.ts';

/** How long the log may deliver nothing before reading fails, in ms. */
const STALL_MS = 30_000;

/**
 * Reads a topic from `from` up to `ends`, and no further than the batch that reaches them. `handle` gets records of one
 * partition in order, one batch at a time. Rejects if `handle` rejects, if the signal aborts, and if no records arrive
 * for 30 s.
 */
export async function readTopic(
  log: Log,
  { topic, from, ends, signal }: { topic: string; from: Positions; ends: Positions; signal: AbortSignal },
  handle: (records: readonly LogRecord[]) => Promise<void>,
): Promise<void> {
  const unfinished = new Set(
    [...ends].filter(([partition, end]) => (from.get(partition) ?? 0n) < end).map(([each]) => each),
  );
  if (unfinished.size === 0) return;
  const finished = Promise.withResolvers<void>();
  const stalled = () =>
    finished.reject(failure('UNAVAILABLE', `The log delivers no more records of ${topic}; try again.`));
  let timer = setTimeout(stalled, STALL_MS);
  const abort = () => finished.reject(signal.reason);
  signal.addEventListener('abort', abort);
  if (signal.aborted) abort();
  let previous: Promise<void> = Promise.resolve();
  const { stop } = log.follow({
    topic,
    from,
    handle(records) {
      previous = previous.then(async () => {
        clearTimeout(timer);
        await handle(records);
        timer = setTimeout(stalled, STALL_MS);
        const last = records.at(-1);
        if (last && last.offset + 1n >= (ends.get(last.partition) ?? 0n)) unfinished.delete(last.partition);
        if (unfinished.size === 0) finished.resolve();
      });
      previous.catch(finished.reject);
      return previous;
    },
  });
  try {
    await finished.promise;
  } finally {
    signal.removeEventListener('abort', abort);
    await stop();
    clearTimeout(timer);
  }
}
