import { expect, test } from 'vitest';
import { entityTag, matches } from './entity-tag.ts';

test('a tag is strong, quoted, and the same for the same drawing', () => {
  const tag = entityTag(['png', 'https://a.example/x', 512]);
  expect(tag).toMatch(/^"[\w-]{22}"$/);
  expect(entityTag(['png', 'https://a.example/x', 512])).toBe(tag);
});

test('whatever is drawn differently has another tag, also where the parts joined are the same', () => {
  const tags = [
    ['png', 'ab', 'c', 512],
    ['png', 'a', 'bc', 512],
    ['png', 'ab', 'c', 513],
    ['svg', 'ab', 'c', 512],
    ['png', 'ab', 'c', '512'],
  ].map(entityTag);
  expect(new Set(tags).size).toBe(tags.length);
});

test.each([[['"a"']], [['W/"a"']], [['"b", W/"a" , "c"']], [['"b"', '"a"']], [['*']]])(
  'If-None-Match %j holds "a"',
  (tags) => {
    expect(matches(tags, '"a"')).toBe(true);
  },
);

test.each([[[]], [['']], [['"b"']], [['a']], [['"A"']], [['"aa"']], [['"a']]])(
  'If-None-Match %j does not hold "a"',
  (tags) => {
    expect(matches(tags, '"a"')).toBe(false);
  },
);
