import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { NIL_UUID } from '../../../../common/contract/ids.ts';
import { firstFault } from '../../../../gateway/rest/body/check-body.ts';
import { rowInput } from '../../../../gateway/rest/resources/batch-schema.ts';
import { BatchRowInputSchema } from '../../../../proto/gen/signpost/batches/v1/batches_pb.ts';
import { skipReason } from '../../../../src/batches/stage.ts';
import { validateRows } from '../../../../src/batches/validate-rows.ts';
import { codeLimitReached } from '../../../../src/codes/create/create-code.ts';
import { designWarning } from '../../../../src/codes/fields/design-warnings.ts';
import { CODE_PROBLEMS } from '../../../../src/targets/changes/find-codes.ts';
import { FOLDER, TAG } from '../../../../src/taxonomy/label-kinds.ts';
import { parseFolderName, parseTagName } from '../../../../src/taxonomy/names.ts';
import { labelsOf } from '../../../../src/taxonomy/resolve.ts';
import { newCode } from './new-code.ts';
import { rowSentence } from './row-sentences.ts';

const ENGLISH = /\b(the|it|its|is|was|has|have|no|not|to|a|an|and|for|must|most|only)\b/i;

function expectGerman(sentences: readonly (string | undefined)[]): void {
  for (const sentence of sentences) {
    expect(sentence).toMatch(/\.$/);
    expect(rowSentence(sentence ?? '')).not.toMatch(ENGLISH);
  }
}

test('every reason why a row of a batch fails is put in German', async () => {
  const url = 'https://example.com/';
  const faulty = [
    {},
    { targetUrl: `${url}${'x'.repeat(2_048)}` },
    { targetUrl: 'example.com' },
    { targetUrl: 'https://me:secret@example.com/' },
    { targetUrl: 'https://xn--a/' },
    { targetUrl: 'https://sign.example/r/7bQkX2a' },
    { targetUrl: url, name: 'x'.repeat(201) },
    { targetUrl: url, campaignType: 'x'.repeat(65) },
    { targetUrl: url, externalRef: 'x'.repeat(129) },
    { targetUrl: url, name: '\0' },
    { targetUrl: url, tags: Array.from({ length: 21 }, (_, index) => `Tag ${index}`) },
    ...[
      { target_url: 7 },
      { target_url: url, name: 7 },
      { target_url: '\ud800' },
      { target_url: url, tags: 'no list' },
    ].map((row) => ({
      fault: firstFault(rowInput.safeParse(row).error ?? expect.fail('is valid')),
    })),
    { fault: 'A row must be an object.' },
  ];
  const noHosts = { query: async () => ({ rows: [] }) } as unknown as Parameters<typeof validateRows>[0];
  const isPlatformHost = (host: string) => host === 'sign.example';
  const rows = await validateRows(
    noHosts,
    isPlatformHost,
    NIL_UUID,
    faulty.map((row) => create(BatchRowInputSchema, row)),
  );
  expectGerman(rows.map(({ problem }) => problem ?? undefined));
  expectGerman([skipReason(100)]);
  expect(rowSentence(rows[0]?.problem ?? '')).toBe('target_url: bitte ausfüllen.');
});

test('every warning about a new code is put in German', () => {
  const problems = ['', 'x'.repeat(101), 'a\tb', 'none'].flatMap((name) =>
    [parseFolderName(name), parseTagName(name)].flatMap((parsed) => ('problem' in parsed ? parsed.problem : [])),
  );
  expect(problems).toHaveLength(7);
  expectGerman(problems);
  for (const kind of [FOLDER, TAG]) {
    expectGerman(labelsOf({ kind, found: new Map(), problems: new Map() }, ['beyond the limit']).warnings);
  }
  expectGerman([designWarning('#ffffff', '#000000'), designWarning('#888888', '#999999')]);
});

test('every reason why one of many codes is not changed is put in German', () => {
  expectGerman([...Object.values(CODE_PROBLEMS), codeLimitReached(5, 5).rawMessage]);
});

test('figures of the contrast have a decimal comma', () => {
  const contrast = /nur 1,\d\d?:1\. Unter \d(,\d)?:1/;
  expect(rowSentence(designWarning('#888888', '#999999') ?? '')).toMatch(contrast);
  expect(newCode.lowContrast('1.2')).toMatch(contrast);
});

test('a sentence that is not known stays as it is', () => {
  expect(rowSentence('The moon is full.')).toBe('The moon is full.');
});
