import fc from 'fast-check';
import { expect, test } from 'vitest';
import { escapeFormulas, unescapeFormulas } from './formulas.ts';

test.each([
  ['=1+1', "'=1+1"],
  ['+a', "'+a"],
  ['-20% off', "'-20% off"],
  ['@7', "'@7"],
  ['\t=1', "'\t=1"],
  ['＝1', "'＝1"],
  ['a;=HYPERLINK(A1);b', "a;'=HYPERLINK(A1);b"],
  ['a\n=1+1', "a\n'=1+1"],
  ['\r=1+1', "\r'=1+1"],
  ['=a;@b', "'=a;'@b"],
])('a spreadsheet finds no formula in %j', (cell, escaped) => {
  expect(escapeFormulas(cell)).toBe(escaped);
});

test.each(['', '-5', '+49.5', 'a;-5', 'https://example.com/?a=b', 'a - b; c', 'summer,=', "'quoted'"])(
  '%j stays as it is',
  (cell) => expect(escapeFormulas(cell)).toBe(cell),
);

test('a cell that was escaped can be read as it was', () => {
  const part = fc.constantFrom('=', '+', '-', '@', '\t', '＝', ';', '\n', 'a', '5', ' ');
  fc.assert(
    fc.property(fc.array(part), (parts) => {
      const cell = parts.join('');
      expect(unescapeFormulas(escapeFormulas(cell))).toBe(cell);
    }),
  );
});
