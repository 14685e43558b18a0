import { expect, test } from 'vitest';
import { fairQueue } from './fair-queue.ts';

/** Work that ends when the test calls `end`. */
function works() {
  const started: string[] = [];
  const ends = new Map<string, () => void>();
  const work = (name: string) => () => {
    started.push(name);
    return new Promise<string>((resolve) => ends.set(name, () => resolve(name)));
  };
  async function end(name: string) {
    ends.get(name)?.();
    await new Promise(setImmediate);
  }
  return { started, work, end };
}

test('the concurrency is limited, and callers take turns, however much each requested', async () => {
  const inTurn = fairQueue({ concurrency: 2, maxWaiting: 10, items: 'images' });
  const { started, work, end } = works();
  const asked = ['a1', 'a2', 'a3', 'a4', 'b1', 'c1'].map((name) => inTurn(name.charAt(0), undefined, work(name)));
  await new Promise(setImmediate);
  expect(started).toEqual(['a1', 'a2']);
  for (const name of ['a2', 'a1', 'a3', 'b1', 'c1', 'a4']) await end(name);
  expect(started).toEqual(['a1', 'a2', 'a3', 'b1', 'c1', 'a4']);
  expect(await Promise.all(asked)).toEqual(['a1', 'a2', 'a3', 'a4', 'b1', 'c1']);
});

test('failed work makes room for the next', async () => {
  const inTurn = fairQueue({ concurrency: 1, maxWaiting: 10, items: 'images' });
  await expect(inTurn('a', undefined, () => Promise.reject(new Error('no ink')))).rejects.toThrow('no ink');
  expect(await inTurn('a', undefined, async () => 'drawn')).toBe('drawn');
});

test('aborted waiting work is removed from the queue', async () => {
  const inTurn = fairQueue({ concurrency: 1, maxWaiting: 1, items: 'images' });
  const { started, work, end } = works();
  const first = inTurn('a', undefined, work('a1'));
  const leaving = new AbortController();
  const left = inTurn('b', leaving.signal, work('b1'));
  leaving.abort();
  await expect(left).rejects.toMatchObject({ name: 'ConnectError' });
  const next = inTurn('b', undefined, work('b2'));
  await end('a1');
  await end('b2');
  expect(await Promise.all([first, next])).toEqual(['a1', 'b2']);
  expect(started).toEqual(['a1', 'b2']);
});

test('work that waits too long is rejected with the error of the queue, and what is left takes its turn', async () => {
  const timeout = { ms: 50, error: () => new Error('no turn in time') };
  const inTurn = fairQueue({ concurrency: 1, maxWaiting: 10, items: 'images', timeout });
  const { started, work, end } = works();
  const first = inTurn('a', undefined, work('a1'));
  await expect(inTurn('b', undefined, work('b1'))).rejects.toThrow('no turn in time');
  const next = inTurn('b', undefined, work('b2'));
  await end('a1');
  await end('b2');
  expect(await Promise.all([first, next])).toEqual(['a1', 'b2']);
  expect(started).toEqual(['a1', 'b2']);
});

test('work beyond the limit of the queue is rejected', async () => {
  const inTurn = fairQueue({ concurrency: 1, maxWaiting: 1, items: 'images' });
  const { work, end } = works();
  const taken = ['a1', 'a2'].map((name) => inTurn('a', undefined, work(name)));
  await expect(inTurn('a', undefined, work('a3'))).rejects.toThrow('Too many images are being requested at the moment');
  await end('a1');
  await end('a2');
  expect(await Promise.all(taken)).toEqual(['a1', 'a2']);
});

test('a full queue rejects the newest of the caller with the most waiting, so that others are still accepted', async () => {
  const inTurn = fairQueue({ concurrency: 1, maxWaiting: 3, items: 'images' });
  const { started, work, end } = works();
  const [a1, a2, a3, a4] = ['a1', 'a2', 'a3', 'a4'].map((name) => inTurn('a', undefined, work(name)));
  const b1 = inTurn('b', undefined, work('b1'));
  await expect(a4).rejects.toThrow('Too many images are being requested at the moment');
  const c1 = inTurn('c', undefined, work('c1'));
  await expect(a3).rejects.toThrow('Too many images are being requested at the moment');
  await expect(inTurn('d', undefined, work('d1'))).rejects.toThrow('Too many images are being requested at the moment');
  for (const name of ['a1', 'a2', 'b1', 'c1']) await end(name);
  expect(await Promise.all([a1, a2, b1, c1])).toEqual(['a1', 'a2', 'b1', 'c1']);
  expect(started).toEqual(['a1', 'a2', 'b1', 'c1']);
});

test('the concurrency per caller is limited, even if there is capacity', async () => {
  const inTurn = fairQueue({ concurrency: 3, concurrencyPerCaller: 2, maxWaiting: 10, items: 'images' });
  const { started, work, end } = works();
  const asked = ['a1', 'a2', 'a3', 'b1'].map((name) => inTurn(name.charAt(0), undefined, work(name)));
  await new Promise(setImmediate);
  expect(started).toEqual(['a1', 'a2', 'b1']);
  await end('b1');
  expect(started).toEqual(['a1', 'a2', 'b1']);
  for (const name of ['a2', 'a1', 'a3']) await end(name);
  expect(await Promise.all(asked)).toEqual(['a1', 'a2', 'a3', 'b1']);
});
