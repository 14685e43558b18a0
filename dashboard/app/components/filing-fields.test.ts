import { expect, test } from 'vitest';
import { newTags, tagsProblem } from './filing-fields.tsx';

/** Tags as they are typed. */

test.each([
  ['summer, lake,', [], ['summer', 'lake']],
  ['Summer,lake,LAKE', ['summer'], ['lake']],
  ['berlin, mitte ', [], ['berlin, mitte']],
  ['Berlin, Mitte, lake', [], ['Berlin', 'Mitte', 'lake']],
  [' , ', [], []],
])('%j after %j adds %j', (typed, chosen, added) => {
  expect(newTags(typed, chosen, ['Berlin, Mitte', 'Summer'])).toEqual(added);
});

test('one that is too long is reported and not cut', () => {
  const [long = ''] = newTags(`${'a'.repeat(100)}🦀`, [], []);
  expect(long).toHaveLength(102);
  expect(tagsProblem([long])).toBe('tooLong');
  expect(tagsProblem(['🦀'.repeat(100)])).toBeUndefined();
  expect(tagsProblem(Array.from({ length: 21 }, (_, n) => `${n}`))).toBe('tooManyTags');
});
