import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readFailure } from '../contract/errors.ts';
import { BodyMemory } from './body-memory.ts';

const LIMITS = { bodyBytes: 100, accountBodyBytes: 50, waiting: 4, accountWaiting: 3, waitMs: 60_000 };
const NEVER = new AbortController().signal;

/** The state of each promise: pending, resolved or rejected. */
function outcomes(all: readonly Promise<unknown>[]): Promise<string[]> {
  const reasonOf = (error: unknown) => readFailure(error).reason as string;
  return Promise.all(all.map((each) => Promise.race([each.then(() => 'has it', reasonOf), sleep(0, 'waits')])));
}

test('an account that requests everything gets its share, and another one the rest', async () => {
  const memory = new BodyMemory(LIMITS);
  const first = [1, 2, 3].map(() => memory.take('a', 25, NEVER));
  const other = memory.take('b', 50, NEVER);
  expect(await outcomes([...first, other])).toEqual(['has it', 'has it', 'waits', 'has it']);
  (await first[0])?.();
  expect(await outcomes(first)).toEqual(['has it', 'has it', 'has it']);
});

test('waiting accounts are served round-robin, however much each waits for', async () => {
  const memory = new BodyMemory({ ...LIMITS, bodyBytes: 50 });
  const release = await memory.take('x', 50, NEVER);
  const order: string[] = [];
  const take = async (account: string) => {
    const done = await memory.take(account, 50, NEVER);
    order.push(account);
    done();
  };
  const all = [take('a'), take('a'), take('a'), take('b')];
  release();
  await Promise.all(all);
  expect(order).toEqual(['a', 'b', 'a', 'a']);
});

test('no request overtakes a body that does not fit yet', async () => {
  const memory = new BodyMemory(LIMITS);
  const held = [await memory.take('a', 40, NEVER), await memory.take('b', 40, NEVER)];
  const [large, small] = [memory.take('c', 50, NEVER), memory.take('d', 10, NEVER)];
  expect(await outcomes([large, small])).toEqual(['waits', 'waits']);
  held[0]?.();
  expect(await outcomes([large, small])).toEqual(['has it', 'has it']);
});

test('beyond the limits of waiting requests, per account and in all, requests fail with UNAVAILABLE', async () => {
  const memory = new BodyMemory({ ...LIMITS, bodyBytes: 50 });
  await memory.take('x', 50, NEVER);
  const of = (account: string, count: number) => Array.from({ length: count }, () => memory.take(account, 1, NEVER));
  expect(await outcomes([...of('a', 4), ...of('b', 2)])).toEqual([
    ...['waits', 'waits', 'waits', 'UNAVAILABLE'],
    ...['waits', 'UNAVAILABLE'],
  ]);
});

test('with any sequence of reservations, releases and aborts, no limit is exceeded and nothing leaks', async () => {
  const step = fc.record({
    account: fc.constantFrom('a', 'b', 'c'),
    bytes: fc.integer({ min: 1, max: 50 }),
    next: fc.constantFrom('keep', 'release', 'abort'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const memory = new BodyMemory(LIMITS);
      const held = new Map<string, number>();
      const releases: (() => void)[] = [];
      const aborts: AbortController[] = [];
      const takes = steps.map(async ({ account, bytes, next }) => {
        const abort = new AbortController();
        aborts.push(abort);
        if (next === 'abort') queueMicrotask(() => abort.abort(new Error('left')));
        const release = await memory.take(account, bytes, abort.signal);
        held.set(account, (held.get(account) ?? 0) + bytes);
        for (const each of held.values()) expect(each).toBeLessThanOrEqual(LIMITS.accountBodyBytes);
        expect([...held.values()].reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(LIMITS.bodyBytes);
        const giveBack = () => {
          held.set(account, (held.get(account) ?? 0) - bytes);
          release();
        };
        if (next === 'keep') releases.push(giveBack);
        else giveBack();
      });
      const all = Promise.allSettled(takes);
      await sleep(0);
      // Held memory is released too, until no request waits.
      while (releases.length > 0) {
        releases.pop()?.();
        await sleep(0);
      }
      await all;
      const rest = [memory.take('d', 50, NEVER), memory.take('e', 50, NEVER)];
      expect(await outcomes(rest)).toEqual(['has it', 'has it']);
    }),
    { numRuns: 100 },
  );
});
