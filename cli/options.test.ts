import { InvalidArgumentError } from 'commander';
import { expect, test } from 'vitest';
import { startOfDay, time } from './options.ts';

test.each([
  ['2026-11-20', '2026-11-20T00:00:00.000Z'],
  ['2028-02-29T09:00Z', '2028-02-29T09:00:00.000Z'],
  ['2026-11-20T09:00:00.123456+02:00', '2026-11-20T07:00:00.123Z'],
  ['2026-11-20 09:00:00z', '2026-11-20T09:00:00.000Z'],
])('%s is a time', (text, instant) => {
  expect(time(text).toISOString()).toBe(instant);
});

test('a time without time zone is one of this machine', () => {
  expect(time('2026-11-20T09:00')).toEqual(new Date(2026, 10, 20, 9));
});

test.each([
  '7',
  '2026',
  '12/11/2026',
  '20 Nov 2026',
  '2026-02-30',
  '2027-02-29T09:00:00Z',
  '2026-11-20T25:00Z',
  'yesterday 5',
])('%s is no time', (text) => {
  expect(() => time(text)).toThrow(InvalidArgumentError);
});

test('a day must exist', () => {
  expect(startOfDay('2026-11-20')).toBe(Date.UTC(2026, 10, 20));
  expect(['2026-04-31', '2027-02-29', '2026-13-01', '2026-1-2', ''].map(startOfDay)).toEqual(Array(5).fill(undefined));
});
