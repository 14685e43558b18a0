import { expect, test } from 'vitest';
import { messages } from '../../messages/en/index.ts';
import { draftOf, newRule } from './policy-draft.ts';
import { previewProblem, targetErrors } from './target-errors.ts';

const { form } = messages.target;
const { missing } = messages.common.urlProblems;
const [RULE_URL, COUNTRIES, FROM] = [
  'policy.rules[0].outcome.target_url',
  'policy.rules[0].when.countries',
  'policy.rules[0].when.from',
];
const draft = {
  ...draftOf({ targetUrl: 'https://example.com/' }),
  rules: [{ ...newRule(), conditions: ['period', 'countries'] as const, from: { typed: '20271-11-01T02:30' } }],
};

test('dates that cannot be sent are reported at once, what is missing once the form was sent', () => {
  expect([...targetErrors(draft, { wasSent: false, unfinished: [] }, messages)]).toEqual([[FROM, form.badYear]]);
  expect(targetErrors(draft, { wasSent: true, unfinished: [] }, messages)).toEqual(
    new Map([
      [COUNTRIES, form.emptyCondition],
      [FROM, form.badYear],
      [RULE_URL, missing],
    ]),
  );
});

test('what the form finds itself goes before what the core said', () => {
  const rejected = new Map([
    [FROM, 'the core’s'],
    ['note', 'the core’s'],
  ]);
  const unfinished = ['policy.rules[0].when.until'];
  expect(targetErrors(draft, { wasSent: false, unfinished, rejected }, messages)).toEqual(
    new Map([
      [FROM, form.badYear],
      ['note', 'the core’s'],
      ['policy.rules[0].when.until', form.unfinishedDate],
    ]),
  );
});

test('a date or an address that cannot be sent keeps a draft from being previewed', () => {
  const rules = draft.rules.map((rule) => ({ ...rule, from: { typed: '' } }));
  expect(previewProblem(draft, messages)).toEqual([FROM, form.badYear]);
  expect(previewProblem({ ...draft, rules }, messages)).toEqual([RULE_URL, missing]);
  expect(previewProblem({ ...draft, rules: [] }, messages)).toBeUndefined();
});
