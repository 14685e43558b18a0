import { expect, test } from 'vitest';
import { turns } from './fair-queue.ts';

/** Work that ends when it is told to. */
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

test('so many at once; then callers take turns, whoever asked for how much', async () => {
  const inTurn = turns({ atOnce: 2, mostWaiting: 10, things: 'images' });
  const { started, work, end } = works();
  const asked = ['a1', 'a2', 'a3', 'a4', 'b1', 'c1'].map((name) => inTurn(name.charAt(0), undefined, work(name)));
  await new Promise(setImmediate);
  expect(started).toEqual(['a1', 'a2']);
  for (const name of ['a2', 'a1', 'a3', 'b1', 'c1', 'a4']) await end(name);
  expect(started).toEqual(['a1', 'a2', 'a3', 'b1', 'c1', 'a4']);
  expect(await Promise.all(asked)).toEqual(['a1', 'a2', 'a3', 'a4', 'b1', 'c1']);
});

test('work that fails gives its place on', async () => {
  const inTurn = turns({ atOnce: 1, mostWaiting: 10, things: 'images' });
  await expect(inTurn('a', undefined, () => Promise.reject(new Error('no ink')))).rejects.toThrow('no ink');
  expect(await inTurn('a', undefined, async () => 'drawn')).toBe('drawn');
});

test('who leaves while waiting is not waited for, and costs nothing', async () => {
  const inTurn = turns({ atOnce: 1, mostWaiting: 1, things: 'images' });
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

test('more than may wait are told to try again', async () => {
  const inTurn = turns({ atOnce: 1, mostWaiting: 1, things: 'images' });
  const { work, end } = works();
  const taken = ['a1', 'a2'].map((name) => inTurn('a', undefined, work(name)));
  await expect(inTurn('a', undefined, work('a3'))).rejects.toThrow('Too many images are asked for at the moment');
  await end('a1');
  await end('a2');
  expect(await Promise.all(taken)).toEqual(['a1', 'a2']);
});

test('a full queue refuses the newest of whoever waits for most, so that others still get in', async () => {
  const inTurn = turns({ atOnce: 1, mostWaiting: 3, things: 'images' });
  const { started, work, end } = works();
  const [a1, a2, a3, a4] = ['a1', 'a2', 'a3', 'a4'].map((name) => inTurn('a', undefined, work(name)));
  const b1 = inTurn('b', undefined, work('b1'));
  await expect(a4).rejects.toThrow('Too many images are asked for at the moment');
  const c1 = inTurn('c', undefined, work('c1'));
  await expect(a3).rejects.toThrow('Too many images are asked for at the moment');
  await expect(inTurn('d', undefined, work('d1'))).rejects.toThrow('Too many images are asked for at the moment');
  for (const name of ['a1', 'a2', 'b1', 'c1']) await end(name);
  expect(await Promise.all([a1, a2, b1, c1])).toEqual(['a1', 'a2', 'b1', 'c1']);
  expect(started).toEqual(['a1', 'a2', 'b1', 'c1']);
});

test('one caller has only so many in hand, although there is room', async () => {
  const inTurn = turns({ atOnce: 3, atOnceEach: 2, mostWaiting: 10, things: 'images' });
  const { started, work, end } = works();
  const asked = ['a1', 'a2', 'a3', 'b1'].map((name) => inTurn(name.charAt(0), undefined, work(name)));
  await new Promise(setImmediate);
  expect(started).toEqual(['a1', 'a2', 'b1']);
  await end('b1');
  expect(started).toEqual(['a1', 'a2', 'b1']);
  for (const name of ['a2', 'a1', 'a3']) await end(name);
  expect(await Promise.all(asked)).toEqual(['a1', 'a2', 'a3', 'b1']);
});
