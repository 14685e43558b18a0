import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { fileName } from './file-name.ts';

test.each([
  ['Summer menu', 'summer-menu-AbC1234.png'],
  ['Café Zürich № 5', 'cafe-zurich-no-5-AbC1234.png'],
  ['../../etc/passwd', 'etc-passwd-AbC1234.png'],
  ['a"; filename="b.exe\r\n', 'a-filename-b-exe-AbC1234.png'],
  ['日本', 'qr-AbC1234.png'],
  ['', 'qr-AbC1234.png'],
  [null, 'qr-AbC1234.png'],
])('%j is saved as %s', (name, saved) => {
  expect(fileName(name, 'AbC1234', 'png')).toBe(saved);
});

test('any name gives a file name valid in every file system and header, at most 60 characters before the short code', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (name) => {
      expect(fileName(name, 'AbC1234', 'svg')).toMatch(/^[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?-AbC1234\.svg$/);
    }),
  );
});
