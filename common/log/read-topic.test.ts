import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { failure } from '../contract/errors.ts';
import type { Log, LogRecord } from './log.ts';
import { readTopic } from './read-topic.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('a batch may be handled for long, but a log that delivers nothing is an error', async () => {
  let deliver: (records: readonly LogRecord[]) => unknown = () => undefined;
  const log = {
    follow({ handle }: { handle: typeof deliver }) {
      deliver = handle;
      return { stop: async () => undefined };
    },
  } as unknown as Log;
  const { signal } = new AbortController();
  const handled = Promise.withResolvers<void>();
  const options = { topic: 'scans', from: new Map([[0, 0n]]), ends: new Map([[0, 2n]]), signal };
  const read = readTopic(log, options, () => handled.promise);
  const failed = vi.fn();
  read.catch(failed);
  deliver([{ partition: 0, offset: 0n } as LogRecord]);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(failed).not.toHaveBeenCalled();
  handled.resolve();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(failed.mock.calls).toEqual([
    [failure('UNAVAILABLE', 'The log delivers no more records of scans; try again.')],
  ]);
});
