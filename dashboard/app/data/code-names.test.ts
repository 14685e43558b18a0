import { expect, test } from 'vitest';
import { isolated } from './code-names.ts';

test('only names that could reorder the words beside them are isolated', () => {
  expect(isolated('Poster')).toBe('Poster');
  for (const name of ['תפריט', 'قائمة', 'Poster \u202e']) expect(isolated(name)).toBe(`\u2068${name}\u2069`);
});
