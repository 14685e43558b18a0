import { expect, test } from 'vitest';
import { policyFromJson } from './policy-json.ts';
import { policyToJson } from './policy-to-json.ts';

const POLICY = {
  rules: [
    {
      name: 'lunch',
      when: { weekly: { time_zone: 'Europe/Berlin', days: ['mon', 'tue'], from: '11:00', until: '14:30' } },
      then: { target_url: 'https://example.com/lunch' },
    },
    {
      when: { countries: ['FR'], languages: ['fr'], devices: ['mobile'], operating_systems: ['ios'] },
      then: {
        split: [
          { label: 'a', weight: 3, target_url: 'https://example.com/a' },
          { label: 'b', weight: 1, target_url: 'https://example.com/b' },
        ],
      },
    },
    { when: { from: '2027-01-01T00:00:00.000Z', until: '2028-01-01T00:00:00.000Z' }, then: { page: 'gone' } },
    { then: { page: 'paused' } },
  ],
  pass_query: true,
  parameters: { utm_source: 'print' },
};

test('a policy is written as it was read', () => {
  const read = policyFromJson(POLICY);
  if ('problem' in read) throw new Error(read.problem);
  expect(policyToJson(read.policy)).toEqual(POLICY);
  const empty = policyFromJson({});
  if ('problem' in empty) throw new Error(empty.problem);
  expect(policyToJson(empty.policy)).toEqual({});
});

test.each([
  [[], 'Invalid input: expected object, received array.'],
  [{ rule: [] }, 'Unrecognized key: "rule".'],
  [JSON.parse('{"parameters":{"__proto__":"a"}}'), 'parameters: A parameter can’t be named __proto__.'],
  [{ rules: [{ when: {} }] }, 'rules[0].then: Invalid input: expected object, received undefined.'],
  [{ rules: [{ then: {} }] }, 'rules[0].then: It must have exactly one of target_url, split and page.'],
  [{ rules: [{ then: { url: 'https://example.com/' } }] }, 'rules[0].then: Unrecognized key: "url".'],
  [
    { rules: [{ then: { split: [{ label: 'a', weight: '3', target_url: 'https://example.com/' }] } }] },
    'rules[0].then.split[0].weight: Invalid input: expected number, received string.',
  ],
  [
    { rules: [{ then: { target_url: 'https://example.com/', page: 'gone' } }] },
    'rules[0].then: It must have exactly one of target_url, split and page.',
  ],
  [{ rules: [{ when: { from: 'tomorrow' }, then: { page: 'gone' } }] }, 'rules[0].when.from: Invalid ISO datetime.'],
  [
    { rules: [{ when: { weekly: { days: ['mon'] } }, then: { page: 'gone' } }] },
    'rules[0].when.weekly.time_zone: Invalid input: expected string, received undefined.',
  ],
])('%j is rejected with a sentence that names the field', (json, problem) => {
  expect(policyFromJson(json)).toEqual({ problem });
});
