import { create } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { problemOfInstant } from './instants.ts';

const [FIRST, LAST] = [-62_135_596_800n, 253_402_300_799n];

test.each([
  [FIRST, 0, true],
  [FIRST - 1n, 999_999_999, false],
  [LAST, 999_499_999, true],
  [LAST, 999_999_999, false],
  [LAST + 1n, 0, false],
  [0n, 999_999_999, true],
  [0n, 1_000_000_000, false],
  [0n, -1, false],
  [2n ** 63n - 1n, 0, false],
  [-(2n ** 63n), 0, false],
])('an instant of %d s and %d ns can be written with a year of four digits: %s', (seconds, nanos, isValid) => {
  const problem = problemOfInstant('at', create(TimestampSchema, { seconds, nanos }));
  expect(problem).toBe(isValid ? undefined : 'at: must be in the years 1 to 9999.');
});
