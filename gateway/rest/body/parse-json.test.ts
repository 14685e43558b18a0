import { describe, expect, test } from 'vitest';
import { parseJson } from './parse-json.ts';

/** Rows of a batch, as `rows` of them are in a body. */
const list = (rows: number) => Array.from({ length: rows }, (_, n) => `{"target_url": "https://example.com/${n}"}`);

/** The error for a body. */
function faultOf(body: string): string | undefined {
  try {
    parseJson(Buffer.from(body));
  } catch (error) {
    return (error as Error).message;
  }
  return undefined;
}

// Each row is in a line of its own, after the first. Source: docs/contract.md, "The QR code resource".
describe.each([1, 3, 50_000])('malformed JSON of %i rows is reported with line and column:', (rows) => {
  const lines = list(rows);

  test('a comma too many', () => {
    const body = `{"rows": [\n${lines.join(',\n')},\n]}`;
    expect(faultOf(body)).toMatch(`unexpected token ']' at line ${rows + 2}, column 1.`);
  });

  test('a word of another language, the first of several', () => {
    const body = `{"rows": [\n${[...lines, '{"name": None}', '{"name": None}'].join(',\n')}]}`;
    expect(faultOf(body)).toMatch(`unexpected token 'N' at line ${rows + 2}, column 10.`);
  });

  test('a body that was cut off', () => {
    const body = `{"rows": [\n${lines.join(',\n')},\n{"target_url":`;
    expect(faultOf(body)).toMatch(`unexpected end at line ${rows + 2}, column 15.`);
  });
});

test.each([
  ['', 'unexpected end at line 1, column 1'],
  ['None', "unexpected token 'N' at line 1, column 1"],
  ['{"a": x}', "unexpected token 'x' at line 1, column 7"],
  // The same characters in a string before it.
  ['["1,2,3,4,5,x,6,7,8,9,0", 1,2,3,4,5,x,6,7,8,9,0]', "unexpected token 'x' at line 1, column 37"],
  ['[1, x, "a long enough text"]', "unexpected token 'x' at line 1, column 5"],
  ['[1, 2, 3, 4, 5, x]', "unexpected token 'x' at line 1, column 17"],
  ['["a long enough text", x]', "unexpected token 'x' at line 1, column 24"],
  ['["a long enough text", 😀, "a long enough text"]', "unexpected token '😀' at line 1, column 24"],
  ['x at position 7', "unexpected token 'x' at line 1, column 1"],
  ['undefined', "unexpected token 'u' at line 1, column 1"],
  ['[object Object]', "unexpected token 'o' at line 1, column 2"],
  ['{"a": 1}}', 'unexpected non-whitespace character after JSON at line 1, column 9'],
  ['{"a": "b}', 'unterminated string at line 1, column 10'],
  ['[1,\u00a02]', 'unexpected token U+00A0 at line 1, column 4'],
  ['[1,\u{e0001}2]', 'unexpected token U+E0001 at line 1, column 4'],
])('the position in a short body is exact: %s', (body, fault) => {
  expect(faultOf(body)).toBe(`The body is not valid JSON: ${fault}.`);
});
