import * as fc from 'fast-check';
import qrcode from 'qrcode';
import { expect, test } from 'vitest';
import { matrixOf } from '../../src/images/matrix.ts';
import { textSegments } from '../../src/images/text-segments.ts';

/** The modules as `qrcode` draws them when it chooses the mask itself. */
function createWithQrcode(text: string) {
  return qrcode.create(textSegments(text), { errorCorrectionLevel: 'M' });
}

/** Compares with `qrcode` by bytes: an equality matcher would take a second for a large code. */
function expectSameModules(text: string): void {
  const [own, { modules }] = [matrixOf(text), createWithQrcode(text)];
  expect([own.modules, Buffer.compare(own.dark, modules.data)], text.slice(0, 80)).toEqual([modules.size, 0]);
}

test('the mask equals that of qrcode in each of the 40 versions', () => {
  const versions = new Set<number>();
  for (let length = 1; length <= 2_331; length += 10) {
    const text = Array.from({ length }, (_, at) => String.fromCharCode(97 + ((at * at + length) % 26))).join('');
    expectSameModules(text);
    versions.add(createWithQrcode(text).version);
  }
  expect(versions.size).toBe(40);
});

test('the mask equals that of qrcode for URLs, for each of the eight masks', () => {
  const masks = new Set<number | undefined>();
  for (let n = 0; n < 1_000; n++) {
    const text = `https://${'abcdefghij'.repeat(6).slice(0, n % 60)}${n}`;
    expectSameModules(text);
    masks.add(createWithQrcode(text).maskPattern);
  }
  expect(masks.size).toBe(8);
});

test('the mask equals that of qrcode for any text', () => {
  const any = fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 300 }),
    fc.stringMatching(/^[0-9A-Z $%*+./:-]{1,300}$/),
    // Equal modules all over: large squares, long runs.
    fc.tuple(fc.constantFrom('\0', 'U', '\u007f', '0'), fc.integer({ min: 1, max: 500 })).map(([c, n]) => c.repeat(n)),
  );
  fc.assert(fc.property(any, expectSameModules), { numRuns: 500 });
});
