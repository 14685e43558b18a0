import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, expect, test, vi } from 'vitest';
import { readFailure } from '../contract/errors.ts';
import { grouped } from './grouped.ts';

afterEach(() => {
  vi.useRealTimers();
});

/** Calls that are grouped; each group runs until it is ended. */
function recorded(options: Partial<Parameters<typeof grouped<string, string>>[0]> = {}) {
  const groups: { readonly calls: readonly string[]; end(error?: Error): void }[] = [];
  const call = grouped<string, string>({
    concurrency: 1,
    maxSize: 3,
    maxWaiting: 5,
    items: 'calls',
    work(calls) {
      const { promise, resolve, reject } = Promise.withResolvers<string[]>();
      const end = (error?: Error) => (error ? reject(error) : resolve(calls.map((each) => each.toUpperCase())));
      groups.push({ calls, end });
      return promise;
    },
    ...options,
  });
  return { call, groups, sizes: () => groups.map(({ calls }) => calls.join('')) };
}

const reasonOf = (call: Promise<unknown>) => call.catch((error: unknown) => readFailure(error).reason);
const settled = () => new Promise((resolve) => setImmediate(resolve));

test('the first call starts at once, and those that come meanwhile are the next groups, in their order', async () => {
  const { call, groups, sizes } = recorded();
  const results = Promise.all(['a', 'b', 'c', 'd', 'e'].map((each) => call(each)));
  expect(sizes()).toEqual(['a']);
  groups[0]?.end();
  await settled();
  expect(sizes()).toEqual(['a', 'bcd']);
  groups[1]?.end();
  await settled();
  groups[2]?.end();
  expect(await results).toEqual(['A', 'B', 'C', 'D', 'E']);
  expect(sizes()).toEqual(['a', 'bcd', 'e']);
});

test('as many groups run at a time as may', () => {
  const { call, sizes } = recorded({ concurrency: 2 });
  for (const each of 'abcd') void call(each);
  expect(sizes()).toEqual(['a', 'b']);
});

test('a group has one call of each key, and calls of one key stay in order', async () => {
  const { call, groups, sizes } = recorded({ keyOf: (each) => each.slice(0, 1) });
  for (const each of ['x0', 'a1', 'a2', 'b1', 'a3']) void call(each);
  for (let group = 0; group < 4; group++) {
    groups[group]?.end();
    await settled();
  }
  expect(sizes()).toEqual(['x0', 'a1b1', 'a2', 'a3']);
});

test('an error fails the calls of its group and no others', async () => {
  const { call, groups } = recorded();
  const results = ['a', 'b', 'c'].map((each) => call(each));
  const outcomes = Promise.allSettled(results);
  groups[0]?.end();
  await settled();
  groups[1]?.end(new Error('broken'));
  await settled();
  const after = call('d');
  groups[2]?.end();
  expect((await outcomes).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
  expect(await after).toBe('D');
});

test('past the calls that may wait, a call fails as unavailable', async () => {
  const { call, groups } = recorded();
  const accepted = [...'abcdef'].map((each) => call(each));
  expect(await reasonOf(call('g'))).toBe('UNAVAILABLE');
  for (let group = 0; group < 3; group++) {
    groups[group]?.end();
    await settled();
  }
  expect(await Promise.all(accepted)).toEqual([...'ABCDEF']);
});

test('calls do not wait for a group that has stalled', async () => {
  vi.useFakeTimers();
  const { call, groups, sizes } = recorded();
  const stalled = call('a');
  const behind = call('b');
  vi.advanceTimersByTime(250);
  expect(sizes()).toEqual(['a', 'b']);
  // The stalled group no longer counts when it ends: one runs at a time.
  groups[0]?.end();
  await stalled;
  void call('c');
  expect(sizes()).toEqual(['a', 'b']);
  groups[1]?.end();
  await behind;
  await vi.waitFor(() => expect(sizes()).toEqual(['a', 'b', 'c']));
});

test('a group runs in the context of its first call', async () => {
  const context = new AsyncLocalStorage<string>();
  const seen: (string | undefined)[] = [];
  const call = grouped<string, string>({
    concurrency: 1,
    maxSize: 3,
    maxWaiting: 5,
    items: 'calls',
    async work(calls) {
      await settled();
      seen.push(context.getStore());
      return calls;
    },
  });
  await Promise.all([...'abc'].map((each) => context.run(`of ${each}`, () => call(each))));
  expect(seen).toEqual(['of a', 'of b']);
});
