import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, expect, test, vi } from 'vitest';
import { readFailure } from '../contract/errors.ts';
import { grouped } from './grouped.ts';

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
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
/** Resolves once everything that was scheduled has run. */
async function settled(): Promise<void> {
  for (let iteration = 0; iteration < 3; iteration++) await new Promise((resolve) => setImmediate(resolve));
}

test('calls of one iteration start together, and those that come meanwhile are the next groups, in their order', async () => {
  const { call, groups, sizes } = recorded();
  const first = Promise.all(['a', 'b'].map((each) => call(each)));
  expect(sizes()).toEqual([]);
  await settled();
  expect(sizes()).toEqual(['ab']);
  const others = Promise.all(['c', 'd', 'e', 'f'].map((each) => call(each)));
  await settled();
  expect(sizes()).toEqual(['ab']);
  groups[0]?.end();
  expect(await first).toEqual(['A', 'B']);
  await settled();
  expect(sizes()).toEqual(['ab', 'cde']);
  groups[1]?.end();
  await settled();
  groups[2]?.end();
  expect(await others).toEqual(['C', 'D', 'E', 'F']);
  expect(sizes()).toEqual(['ab', 'cde', 'f']);
});

test('as many groups run at a time as may', async () => {
  const { call, sizes } = recorded({ concurrency: 2, maxWaiting: 10 });
  for (const each of 'abcdefg') void call(each);
  await settled();
  expect(sizes()).toEqual(['abc', 'def']);
});

test('a group has one call of each key, and calls of one key stay in order', async () => {
  const { call, groups, sizes } = recorded({ keyOf: (each) => each.slice(0, 1) });
  for (const each of ['x0', 'a1', 'a2', 'b1', 'a3']) void call(each);
  for (let group = 0; group < 3; group++) {
    await settled();
    groups[group]?.end();
  }
  expect(sizes()).toEqual(['x0a1b1', 'a2', 'a3']);
});

test('an error fails the calls of its group and no others', async () => {
  const { call, groups } = recorded();
  const results = ['a', 'b', 'c', 'd'].map((each) => call(each));
  const outcomes = Promise.allSettled(results);
  await settled();
  groups[0]?.end(new Error('broken'));
  await settled();
  groups[1]?.end();
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected', 'fulfilled']);
  const after = call('e');
  await settled();
  groups[2]?.end();
  expect(await after).toBe('E');
});

test('past the calls that may wait, a call fails as unavailable', async () => {
  const { call, groups } = recorded();
  const first = call('a');
  await settled();
  const accepted = [...'bcdef'].map((each) => call(each));
  expect(await reasonOf(call('g'))).toBe('UNAVAILABLE');
  for (let group = 0; group < 3; group++) {
    groups[group]?.end();
    await settled();
  }
  expect(await Promise.all([first, ...accepted])).toEqual([...'ABCDEF']);
});

test('calls do not wait for a group that has stalled', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { call, groups, sizes } = recorded();
  const stalled = call('a');
  await settled();
  const behind = call('b');
  vi.advanceTimersByTime(250);
  await settled();
  expect(sizes()).toEqual(['a', 'b']);
  // The stalled group no longer counts when it ends: one runs at a time.
  groups[0]?.end();
  await stalled;
  void call('c');
  await settled();
  expect(sizes()).toEqual(['a', 'b']);
  groups[1]?.end();
  await behind;
  await settled();
  expect(sizes()).toEqual(['a', 'b', 'c']);
});

test('a group that has ended leaves no timer behind', async () => {
  const [started, cleared] = [vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'clearTimeout')];
  const { call, groups } = recorded();
  const first = call('a');
  await settled();
  // Vitest may start timers, too.
  const timer = started.mock.results[started.mock.calls.findIndex(([, ms]) => ms === 250)]?.value;
  expect(timer).toBeDefined();
  expect(cleared).not.toHaveBeenCalledWith(timer);
  groups[0]?.end();
  await first;
  expect(cleared).toHaveBeenCalledWith(timer);
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
  await Promise.all([...'abcd'].map((each) => context.run(`of ${each}`, () => call(each))));
  expect(seen).toEqual(['of a', 'of d']);
});
