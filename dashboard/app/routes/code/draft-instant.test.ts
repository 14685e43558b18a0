import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { beforeEach, expect, test, vi } from 'vitest';
import { instantDraft, repetitionOf } from './draft-instant.ts';

beforeEach(() => {
  vi.stubEnv('TZ', 'Europe/Berlin');
  return () => vi.unstubAllEnvs();
});

test.each([
  ['2027-10-31T01:59', undefined],
  ['2027-10-31T02:00', 'first'],
  ['2027-10-31T02:59:59', 'first'],
  ['2027-10-31T03:00', undefined],
  ['2027-03-28T02:30', undefined],
  ['', undefined],
])('a typed time that comes twice means the first one: %j', (typed, repetition) => {
  expect(repetitionOf({ typed })).toBe(repetition);
});

test('on Lord Howe Island, half an hour comes twice', () => {
  vi.stubEnv('TZ', 'Australia/Lord_Howe');
  const typed = ['2027-04-04T01:29', '2027-04-04T01:30', '2027-04-04T01:59', '2027-04-04T02:00'];
  expect(typed.map((each) => repetitionOf({ typed: each }))).toEqual([undefined, 'first', 'first', undefined]);
});

test('the second one of a time that comes twice is known', () => {
  expect(repetitionOf(instantDraft(timestampFromDate(new Date('2027-10-31T01:30:00Z'))))).toBe('second');
});
