import { expect, test } from 'vitest';
import { defaultWorkers } from './default-workers.ts';

const GIB = 1024 ** 3;

test.each([
  ['has a worker for each CPU', 4, 2 * GIB, 4],
  ['has no more workers than fit into its memory', 64, 2 * GIB, 8],
  ['has a worker however little memory it may take', 4, GIB / 8, 1],
  ['has a worker for each CPU if its memory has no limit', 64, 2 ** 64, 64],
  ['has a worker for each CPU if that limit is unknown', 64, 0, 64],
])('by default a gateway %s', (_, cpus, bytes, workers) => {
  expect(defaultWorkers(cpus, bytes)).toBe(workers);
});
