import { beforeEach, expect, test, vi } from 'vitest';
import { badAddresses, badDates, parametersProblem } from './draft-problems.ts';
import { draftOf, newRule, newVariant } from './policy-draft.ts';

const TARGET_URL = 'https://example.com/';

beforeEach(() => {
  vi.stubEnv('TZ', 'Europe/Berlin');
  return () => vi.unstubAllEnvs();
});

test.each([
  ['20271-11-01T02:30', 'badYear'],
  ['0001-01-01T00:00', 'badYear'],
  ['9999-12-31T23:59', undefined],
  ['1850-01-01T00:00', undefined],
  ['', undefined],
  ['2027-03-28T01:59', undefined],
  ['2027-03-28T02:00', 'skippedTime'],
  ['2027-03-28T02:59:59', 'skippedTime'],
  ['2027-03-28T03:00', undefined],
  ['2027-10-31T02:30:30', undefined],
])('an instant that can’t be sent is reported: %j', (typed, problem) => {
  const rules = [{ ...newRule(), conditions: ['period' as const], until: { typed } }];
  expect(badDates({ ...draftOf({ targetUrl: TARGET_URL }), rules }).get('policy.rules[0].when.until')).toBe(problem);
});

test('addresses that the core would reject are reported, but only those that the form shows', () => {
  const draft = draftOf({ targetUrl: 'example.com' });
  const [variant, other] = [newVariant('a'), { ...newVariant('b'), url: TARGET_URL }];
  const rules = [newRule(), { ...newRule(), outcome: 'split' as const, variants: [other, variant] }];
  expect([...badAddresses({ ...draft, rules: [...rules, { ...newRule(), outcome: 'gone' }] })]).toEqual([
    ['target_url', 'not_absolute'],
    ['policy.rules[0].outcome.target_url', 'missing'],
    ['policy.rules[1].outcome.split.variants[1].target_url', 'missing'],
  ]);
});

test.each([
  ['', undefined],
  ['a=1\n\n b = 2\nA=', undefined],
  ['a', 'malformed'],
  [' =1', 'malformed'],
  ['a=1\n a =2', 'repeated'],
])('the parameters %j have the problem %s', (typed, problem) => {
  expect(parametersProblem({ parameters: typed })).toBe(problem);
});
