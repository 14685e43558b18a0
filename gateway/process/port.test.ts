import { expect, test } from 'vitest';
import { sharedByWorkers } from './port.ts';

test.each([
  { sockets: 1, workers: 1, shares: [[10]] },
  {
    sockets: 4,
    workers: 2,
    shares: [
      [10, 12],
      [11, 13],
    ],
  },
  { sockets: 3, workers: 2, shares: [[10, 12], [11]] },
  { sockets: 1, workers: 3, shares: [[10], [10], [10]] },
  { sockets: 2, workers: 3, shares: [[10], [11], [10]] },
])('$workers workers accept from all of $sockets sockets', ({ sockets, workers, shares }) => {
  const descriptors = Array.from({ length: sockets }, (_, index) => 10 + index);
  expect(Array.from({ length: workers }, (_, worker) => sharedByWorkers(descriptors, workers)(worker))).toEqual(shares);
});
