import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { beforeEach, expect, test, vi } from 'vitest';
import { type Policy, PolicySchema } from '../../../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { parametersProblem } from './draft-problems.ts';
import { draftOf, isChanged, policyOf } from './policy-draft.ts';

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
