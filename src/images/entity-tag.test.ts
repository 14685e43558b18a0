import { expect, test } from 'vitest';
import { entityTag, matches } from './entity-tag.ts';

test('a tag is strong, quoted, and equal for equal inputs', () => {
  const tag = entityTag(['png', 'https://a.example/x', 512]);
  expect(tag).toMatch(/^"[\w-]{22}"$/);
  expect(entityTag(['png', 'https://a.example/x', 512])).toBe(tag);
});

test('different inputs have different tags, even when they are equal once joined', () => {
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
  'If-None-Match %j matches "a"',
  (tags) => {
    expect(matches(tags, '"a"')).toBe(true);
  },
);

test.each([[[]], [['']], [['"b"']], [['a']], [['"A"']], [['"aa"']], [['"a']]])(
  'If-None-Match %j does not match "a"',
  (tags) => {
    expect(matches(tags, '"a"')).toBe(false);
  },
);
