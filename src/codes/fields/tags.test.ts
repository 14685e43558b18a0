import { expect, test } from 'vitest';
import { encodeId, newUuid } from '../../../common/contract/ids.ts';
import { readTags } from './tags.ts';

const numbered = (length: number, prefix = 't') => Array.from({ length }, (_, n) => `${prefix}${n}`);
const ids = (length: number) => Array.from({ length }, () => encodeId('tag', newUuid()));
const TOO_MANY = 'tags: a code can have at most 20 tags.';

test('tags are trimmed, and of several references to one tag the first is left', () => {
  const id = encodeId('tag', newUuid());
  const tags = ['b', ' Straße ', id, 'STRASSE', 'b', `${id} `, 'a\nb'];
  expect(readTags(tags)).toEqual({ tags: ['b', 'Straße', id, 'a\nb'] });
});

test('20 tags by name and 20 by id may be the same ones', () => {
  const references = [...numbered(20), ...ids(20)];
  expect(readTags(references)).toEqual({ tags: references });
});

test.each([
  ['21 names', numbered(21)],
  ['21 ids', ids(21)],
  ['5,001 invalid ones', numbered(5_001, '\x7f')],
  ['5,001 spellings of a name', Array.from({ length: 5_001 }, (_, n) => spelling(n))],
])('tags are read until they are too many: %s', (_, references) => {
  Object.defineProperty(references, references.length, { get: () => expect.fail('is not read') });
  const { tags, problem } = readTags(references);
  expect(problem).toBe(TOO_MANY);
  expect(tags.length).toBeLessThanOrEqual(21);
});

test('of thousands of invalid tags some are left, and all problems that they have', () => {
  const read = readTags([...numbered(2_000, '\x7f'), 'x'.repeat(101), 'ok', '', ...numbered(2_000, '\x80')]);
  expect(read).toEqual({ tags: [...numbered(21, '\x7f'), 'x'.repeat(101), 'ok', ''] });
});

/** A spelling of one name: the bits of `n` say which letters are capitals. */
function spelling(n: number): string {
  return Array.from({ length: 13 }, (_, bit) => ((n >> bit) & 1 ? 'A' : 'a')).join('');
}
