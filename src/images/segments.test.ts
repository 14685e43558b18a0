import * as fc from 'fast-check';
import qrcode from 'qrcode';
import { expect, test } from 'vitest';
import { shortestSegments } from './segments.ts';

const OPTIONS = { errorCorrectionLevel: 'M' } as const;

/** What `qrcode` encodes: the mode and data of each segment. */
function segmentsOf(content: Parameters<typeof qrcode.create>[0]) {
  return qrcode.create(content, OPTIONS).segments.map(({ mode, data }) => ({ mode, data }));
}

function expectSameSegments(text: string): void {
  expect(segmentsOf(shortestSegments(text) ?? []), text).toEqual(segmentsOf(text));
}

/** Parts whose characters belong to different modes, with lengths at which other modes become shorter. */
const part = fc
  .tuple(
    fc.constantFrom('0123456789', 'ABZ $:/.-', 'abz~#?', '09AZaz', '0A', 'Aa', '0a'),
    fc.integer({ min: 1, max: 20 }),
  )
  .chain(([characters, maxLength]) => fc.string({ unit: fc.constantFrom(...characters), minLength: 1, maxLength }));

/** Texts of so many parts at most. */
const mixed = (maxLength: number) =>
  fc.array(part, { minLength: 1, maxLength, size: 'max' }).map((parts) => parts.join(''));

test.each([
  [8, 2_000],
  [200, 100],
])('texts of up to %d parts have the segments that qrcode chooses', (maxLength, numRuns) => {
  fc.assert(fc.property(mixed(maxLength), expectSameSegments), { numRuns });
});

test.each([
  'https://go.example.com/AbC1234',
  'HTTPS://GO.EXAMPLE.COM/ABC1234',
  '0123456789',
  'A1'.repeat(30),
  // The largest with counts of each length, one more character, and the largest of all.
  ...[180, 181, 1_059, 1_060, 2_331].map((length) => 'x'.repeat(length)),
  'a1'.repeat(1_165),
  'ü1'.repeat(777),
])('%s has the segments that qrcode chooses', expectSameSegments);

test('an empty text is left to qrcode, which rejects it', () => {
  expect(shortestSegments('')).toBeUndefined();
});

test('a text may be too long for any code', () => {
  expect(() => segmentsOf(shortestSegments('x'.repeat(2_332)) ?? [])).toThrow();
});
