import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { beforeEach, expect, test, vi } from 'vitest';
import { type Policy, PolicySchema } from '../../../../proto/gen/signpost/targets/v1/policy_pb.ts';
import {
  badAddresses,
  badDates,
  draftOf,
  isChanged,
  newRule,
  newVariant,
  parametersProblem,
  policyOf,
  repetitionOf,
} from './policy-draft.ts';

const TARGET_URL = 'https://example.com/';

beforeEach(() => {
  vi.stubEnv('TZ', 'Europe/Berlin');
  return () => vi.unstubAllEnvs();
});

function policyUntil(until: string, nanos = 0): Policy {
  return create(PolicySchema, {
    rules: [
      {
        name: 'autumn',
        when: { until: { ...timestampFromDate(new Date(until)), nanos } },
        outcome: { kind: { case: 'targetUrl', value: TARGET_URL } },
      },
    ],
    parameters: { utm_source: 'print', utm_medium: 'a=b' },
  });
}

test.each([
  ['in the hour that autumn repeats', policyUntil('2027-10-31T00:30:00Z')],
  ['in its repetition', policyUntil('2027-10-31T01:30:00Z')],
  ['with a fraction of a second', policyUntil('2027-07-01T10:00:00Z', 123_456_789)],
])('a form that is not edited keeps an instant %s', (_, policy) => {
  expect(create(PolicySchema, policyOf(draftOf({ targetUrl: TARGET_URL, policy })))).toEqual(policy);
});

test('a form that is not edited keeps parameters that can’t be typed', () => {
  const policy = create(PolicySchema, { parameters: { 'a=b': 'c', ' d ': ' e ', f: 'two\nlines' } });
  const draft = draftOf({ targetUrl: TARGET_URL, policy });
  expect(parametersProblem(draft)).toBeUndefined();
  expect(create(PolicySchema, policyOf(draft))).toEqual(policy);
  const edited = { ...draft, parameters: 'f=one', uneditedParameters: undefined };
  expect(policyOf(edited).parameters).toEqual({ f: 'one' });
});

test('a form with an instant knows whether it was edited', () => {
  const draft = draftOf({ targetUrl: TARGET_URL, policy: policyUntil('2027-10-31T01:30:00Z') });
  expect(isChanged(draft, { ...draft })).toBe(false);
  const rules = draft.rules.map((rule) => ({ ...rule, until: { typed: rule.until.typed } }));
  expect(isChanged({ ...draft, rules }, draft)).toBe(true);
});

test('an edited instant is what was typed in the browser’s time zone', () => {
  const draft = draftOf({ targetUrl: TARGET_URL, policy: policyUntil('2027-10-31T01:30:00Z') });
  const [rule] = draft.rules;
  if (!rule) throw new Error('the draft has no rule');
  expect(rule.until.typed).toBe('2027-10-31T02:30');
  const untilWith = (typed: string) =>
    create(PolicySchema, policyOf({ ...draft, rules: [{ ...rule, until: { typed } }] })).rules[0]?.when?.until;
  expect(untilWith('2027-11-01T02:30')).toEqual(timestampFromDate(new Date('2027-11-01T01:30:00Z')));
  expect(untilWith('')).toBeUndefined();
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
  const draft = draftOf({ targetUrl: TARGET_URL, policy: policyUntil('2027-10-31T01:30:00Z') });
  const rules = draft.rules.map((rule) => ({ ...rule, until: { typed } }));
  expect(badDates({ ...draft, rules }).get('policy.rules[0].when.until')).toBe(problem);
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
  const [rule] = draftOf({ targetUrl: TARGET_URL, policy: policyUntil('2027-10-31T01:30:00Z') }).rules;
  expect(rule && repetitionOf(rule.until)).toBe('second');
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
