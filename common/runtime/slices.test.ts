import { expect, test } from 'vitest';
import { slices } from './slices.ts';

const split = (sizes: readonly number[]) => [...slices(sizes, { items: 3, size: 10 }, (size) => size)];

test('slices end after so many items, or with the one with which their sizes reach the limit', () => {
  expect(split([])).toEqual([]);
  expect(split([1, 1, 1, 1])).toEqual([[1, 1, 1], [1]]);
  expect(split([4, 6, 99, 1, 8, 1, 0])).toEqual([[4, 6], [99], [1, 8, 1], [0]]);
});
