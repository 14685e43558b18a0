import { expect, test } from 'vitest';
import { DOMAIN_PROBLEMS } from '../../../../src/domains/problems.ts';
import { DISABLE_REASONS } from '../../../../src/webhooks/endpoints/disable-reasons.ts';
import { coreSentence } from './core-sentences.ts';

const ENGLISH = /\b(the|it|its|is|has|no|not|to|a|and|was|for|yet|only|all)\b/i;

test('every problem of a domain is put in German, with its names', () => {
  const { noTxt, otherTxt, otherAccount, noAddress, foreignAddresses, remedy } = DOMAIN_PROBLEMS;
  const host = 'menu.example.com';
  const [byName, byAddress] = [remedy(host, 'sign.example', []), remedy(host, 'sign.example', ['192.0.2.10', '::10'])];
  const german = [
    noTxt(`_signpost.${host}`),
    otherTxt(`_signpost.${host}`, 'signpost-verify=1'),
    otherAccount,
    ...[byName, byAddress].flatMap((each) => [
      noAddress(host, each),
      foreignAddresses(host, [], true, each),
      foreignAddresses(host, ['203.0.113.1', '::7'], true, each),
      foreignAddresses(host, ['203.0.113.1', '::7'], false, each),
    ]),
  ].map(coreSentence);
  for (const sentence of german) expect(sentence).not.toMatch(ENGLISH);
  expect(german[1]).toBe(`Der TXT-Eintrag bei _signpost.${host} enthält nicht signpost-verify=1.`);
  expect(german.at(-3)).toContain(`${host} führt zu einer nicht öffentlichen Adresse. `);
  expect(german.at(-2)).toContain(`${host} führt zu 203.0.113.1, ::7 und einer nicht öffentlichen Adresse. `);
  expect(german.at(-1)).toBe(
    `${host} führt zu 203.0.113.1, ::7. Machen Sie ${host} zu einem CNAME für sign.example, oder geben Sie ihm nur die Adressen 192.0.2.10, ::10.`,
  );
});

test('every reason to disable an endpoint is put in German', () => {
  for (const reason of Object.values(DISABLE_REASONS)) expect(coreSentence(reason)).not.toMatch(ENGLISH);
});

test('a sentence that is not known stays as it is', () => {
  expect(coreSentence('The moon is full.')).toBe('The moon is full.');
});
