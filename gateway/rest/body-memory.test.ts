import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readFailure } from '../../common/contract/errors.ts';
import { BodyMemory } from './body-memory.ts';
import { REQUEST_LIMITS } from './request-limits.ts';

const LIMITS = { ...REQUEST_LIMITS, bodyBytes: 100, accountBodyBytes: 50, waiting: 4, accountWaiting: 3 };
const NEVER = new AbortController().signal;

/** Whether each has been settled by now, and how. */
function outcomes(all: readonly Promise<unknown>[]): Promise<string[]> {
  const reasonOf = (error: unknown) => readFailure(error).reason as string;
  return Promise.all(all.map((each) => Promise.race([each.then(() => 'has it', reasonOf), sleep(0, 'waits')])));
}

test('an account that asks for everything gets its part, and another one what is left', async () => {
  const memory = new BodyMemory(LIMITS);
  const first = [1, 2, 3].map(() => memory.take('a', 25, NEVER));
  const other = memory.take('b', 50, NEVER);
  expect(await outcomes([...first, other])).toEqual(['has it', 'has it', 'waits', 'has it']);
  (await first[0])?.();
  expect(await outcomes(first)).toEqual(['has it', 'has it', 'has it']);
});

test('accounts that wait are served in turn, whoever waits for how much', async () => {
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

test('nobody overtakes a body that does not fit yet', async () => {
  const memory = new BodyMemory(LIMITS);
  const held = [await memory.take('a', 40, NEVER), await memory.take('b', 40, NEVER)];
  const [large, small] = [memory.take('c', 50, NEVER), memory.take('d', 10, NEVER)];
  expect(await outcomes([large, small])).toEqual(['waits', 'waits']);
  held[0]?.();
  expect(await outcomes([large, small])).toEqual(['has it', 'has it']);
});

test('beyond so many that wait, of one account and of all, the answer is UNAVAILABLE', async () => {
  const memory = new BodyMemory({ ...LIMITS, bodyBytes: 50 });
  await memory.take('x', 50, NEVER);
  const of = (account: string, count: number) => Array.from({ length: count }, () => memory.take(account, 1, NEVER));
  expect(await outcomes([...of('a', 4), ...of('b', 2)])).toEqual([
    ...['waits', 'waits', 'waits', 'UNAVAILABLE'],
    ...['waits', 'UNAVAILABLE'],
  ]);
});

test('whatever is taken, given back and given up, no limit is exceeded and nothing is left behind', async () => {
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
      // What is kept goes back too, until nobody waits.
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
