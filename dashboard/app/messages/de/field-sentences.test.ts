import { create, type DescMessage, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { expect, test } from 'vitest';
import { failure } from '../../../../common/contract/errors.ts';
import { NIL_UUID } from '../../../../common/contract/ids.ts';
import { contentProblem } from '../../../../common/contract/limits.ts';
import { CreateStaticCodeRequestSchema } from '../../../../proto/gen/signpost/codes/v1/codes_pb.ts';
import { LandingPageSchema } from '../../../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import { PolicySchema } from '../../../../proto/gen/signpost/targets/v1/policy_pb.ts';
import { SetTargetRequestSchema } from '../../../../proto/gen/signpost/targets/v1/targets_pb.ts';
import { asFailure } from '../../../../src/calls/as-failure.ts';
import { expectValid } from '../../../../src/calls/validator.ts';
import { readLandingPage } from '../../../../src/codes/fields/landing-page.ts';
import { readHostname } from '../../../../src/domains/hostname.ts';
import { readPolicies } from '../../../../src/targets/policies.ts';
import { fieldErrors } from '../../data/field-errors.ts';
import { common } from './common.ts';

const ENGLISH = /\b(the|it|its|is|was|has|have|no|not|to|a|an|and|for|must|most|only|least|more)\b/i;

const URL = 'https://example.com/';
const outcome = { kind: { case: 'targetUrl', value: URL } } as const;
const weekly = { timeZone: 'Europe/Berlin', days: ['mon'], from: '09:00', until: '17:00' };

/** What the core says of a policy with these conditions. */
const when = (conditions: object) => ({ rules: [{ when: conditions, outcome }] });
/** The same of a split in these variants. */
const split = (variants: readonly object[]) => ({
  rules: [{ outcome: { kind: { case: 'split', value: { variants } } } }],
});

function expectGerman(error: unknown): void {
  const sentences = [...fieldErrors(error, common.invalid).values()];
  expect(sentences, String(error)).toHaveLength(1);
  expect(sentences[0]).toMatch(/^[A-ZÄÖÜ„].*\.$/s);
  expect(sentences[0]).not.toMatch(ENGLISH);
}

/** The error of `make`. */
function errorOf(make: () => unknown): unknown {
  try {
    make();
  } catch (error) {
    return asFailure(error);
  }
  return expect.fail('is valid');
}

test('every rule of the proto files for what forms send is put in German', () => {
  const expectRefused = <Schema extends DescMessage>(schema: Schema, message: MessageInitShape<Schema>) =>
    expectGerman(errorOf(() => expectValid(schema, create(schema, message))));
  const many = Array.from({ length: 21 }, (_, index) => `x${index}`);
  const a = { label: 'a', weight: 1, targetUrl: URL };
  const policies = [
    { rules: many.map(() => ({ outcome })) },
    { rules: [{ name: 'x'.repeat(65), outcome }] },
    { parameters: Object.fromEntries(many.map((name) => [name, ''])) },
    { parameters: { ['x'.repeat(65)]: '' } },
    { parameters: { x: 'x'.repeat(257) } },
    when({ countries: ['DE', 'DE'] }),
    when({ languages: ['German'.repeat(2)] }),
    when({ languages: many.flatMap((tag) => [tag, `${tag}a`, `${tag}b`]) }),
    when({ weekly: { ...weekly, timeZone: '' } }),
    when({ weekly: { ...weekly, days: [] } }),
    when({ weekly: { ...weekly, from: '' } }),
    split([a]),
    split(many.map((label) => ({ ...a, label }))),
    split([a, { ...a, label: '' }]),
    split([a, { ...a, label: 'x'.repeat(33) }]),
    split([a, { ...a, label: '\n' }]),
    split([a, { ...a, label: 'b', weight: 0 }]),
  ] as MessageInitShape<typeof PolicySchema>[];
  for (const policy of policies) expectRefused(SetTargetRequestSchema, { policy });
  expectRefused(SetTargetRequestSchema, { note: 'x'.repeat(201) });
  expectRefused(LandingPageSchema, { title: '' });
  expectRefused(LandingPageSchema, { title: 'x', foregroundColor: 'red' });
  expectRefused(CreateStaticCodeRequestSchema, { content: { case: 'payload', value: 'x'.repeat(3_000) } });
});

test('what the core finds in a hostname is put in German, each for itself', () => {
  const long = `${'a.'.repeat(130)}example`;
  const typed = ['192.0.2.1', 'https://example.com', '*.example.com', 'a..b', 'example', long, 'go.example'];
  const problems = typed.map((hostname) => {
    const read = readHostname(hostname, 'go.example');
    return 'problem' in read ? read.problem : expect.fail(`${hostname} is valid`);
  });
  for (const problem of problems) expectGerman(failure('INVALID_FIELD', problem));
  const sentences = problems.flatMap((problem) => [
    ...fieldErrors(failure('INVALID_FIELD', problem), common.invalid).values(),
  ]);
  expect(new Set(sentences).size).toBe(typed.length);
  expect(sentences.at(-1)).toBe('„go.example“ ist der Hostname von Signpost selbst.');
});

test('what the core finds in a policy or a landing page is put in German', async () => {
  const noHosts = { query: async () => ({ rows: [] }) } as unknown as Parameters<typeof readPolicies>[0];
  const variants = ['red', 'red'].map((label) => ({ label, weight: 1, targetUrl: URL }));
  const policies = [
    when({ from: timestampFromMs(2), until: timestampFromMs(1) }),
    when({ countries: ['xx'] }),
    when({ operatingSystems: ['plan 9'] }),
    when({ weekly: { ...weekly, timeZone: 'Berlin' } }),
    split(variants),
    { parameters: { x: '\0' } },
    { rules: [{ outcome: { kind: { case: 'targetUrl', value: 'https://me:secret@example.com/' } } }] },
  ] as MessageInitShape<typeof PolicySchema>[];
  const read = await readPolicies(
    noHosts,
    () => false,
    NIL_UUID,
    policies.map((policy) => create(PolicySchema, policy)),
  );
  for (const policy of read) expectGerman(failure('INVALID_FIELD', 'problem' in policy ? policy.problem : ''));
  expectGerman(failure('INVALID_FIELD', contentProblem('policy', 60_001) ?? ''));
  for (const page of [{ title: 'a\nb' }, { title: 'x', text: '\0' }, { title: 'x', links: [{ label: 'x', url: '' }] }])
    expectGerman(errorOf(() => readLandingPage(create(LandingPageSchema, page))));
});
