import type { Log, LogRecord, Positions } from './log.ts';

/** How long the log may hand out nothing before the reading fails, in ms. */
const SILENT_MS = 30_000;

/**
 * Reads a topic from some positions up to the given ends, and no further than the batch that reaches them. `handle` gets
 * records of one partition in their order, one batch at a time. Rejects when it does, when the signal aborts, and when
 * nothing comes for half a minute.
 */
export async function readTopic(
  log: Log,
  { topic, from, ends, signal }: { topic: string; from: Positions; ends: Positions; signal: AbortSignal },
  handle: (records: readonly LogRecord[]) => Promise<void>,
): Promise<void> {
  const left = new Set([...ends].filter(([partition, end]) => (from.get(partition) ?? 0n) < end).map(([each]) => each));
  if (left.size === 0) return;
  const finished = Promise.withResolvers<void>();
  const silent = () => finished.reject(new Error(`the log hands out no more of ${topic}`));
  let timer = setTimeout(silent, SILENT_MS);
  const abort = () => finished.reject(signal.reason);
  signal.addEventListener('abort', abort);
  if (signal.aborted) abort();
  let inTurn: Promise<void> = Promise.resolve();
  const { stop } = log.follow({
    topic,
    from,
    handle(records) {
      clearTimeout(timer);
      timer = setTimeout(silent, SILENT_MS);
      inTurn = inTurn.then(async () => {
        await handle(records);
        const last = records.at(-1);
        if (last && last.offset + 1n >= (ends.get(last.partition) ?? 0n)) left.delete(last.partition);
        if (left.size === 0) finished.resolve();
      });
      inTurn.catch(finished.reject);
      return inTurn;
    },
  });
  try {
    await finished.promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
    await stop();
  }
}
