import { expect, test } from 'vitest';
import { BoundedMap } from './bounded-map.ts';

test('is cleared when it is full, and then has room again', () => {
  const map = new BoundedMap<string, number>(3, 100);
  map.set('a', 1, 60);
  map.set('b', 2, 41);
  expect([map.get('a'), map.get('b')]).toEqual([undefined, 2]);
  map.set('c', 3, 10);
  map.set('d', 4, 10);
  expect([map.get('b'), map.get('c'), map.get('d')]).toEqual([2, 3, 4]);
  map.set('e', 5, 1);
  expect([map.get('b'), map.get('e')]).toEqual([undefined, 5]);
});

test('a value that replaces another takes its place', () => {
  const map = new BoundedMap<string, number>(2, 100);
  map.set('a', 1, 40);
  for (let n = 0; n < 10; n++) map.set('b', n, 60);
  expect([map.get('a'), map.get('b')]).toEqual([1, 9]);
});
