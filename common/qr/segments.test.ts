import * as fc from 'fast-check';
import qrcode from 'qrcode';
import { expect, test } from 'vitest';
import { shortTextSegments } from './segments.ts';

const OPTIONS = { errorCorrectionLevel: 'M' } as const;

/** What `qrcode` encodes: the mode and data of each segment. */
function segmentsOf(content: Parameters<typeof qrcode.create>[0]) {
  return qrcode.create(content, OPTIONS).segments.map(({ mode, data }) => ({ mode, data }));
}

function expectSameSegments(text: string): void {
  const own = shortTextSegments(text);
  if (own) expect(segmentsOf(own), text).toEqual(segmentsOf(text));
}

/** Parts whose characters belong to different modes, with lengths at which other modes become shorter. */
const part = fc
  .tuple(
    fc.constantFrom('0123456789', 'ABZ $:/.-', 'abz~#?', '09AZaz', '0A', 'Aa', '0a'),
    fc.integer({ min: 1, max: 20 }),
  )
  .chain(([characters, maxLength]) => fc.string({ unit: fc.constantFrom(...characters), minLength: 1, maxLength }));

test('short texts have the segments that qrcode chooses', () => {
  const mixed = fc.array(part, { minLength: 1, maxLength: 8 }).map((parts) => parts.join(''));
  fc.assert(fc.property(mixed, expectSameSegments), { numRuns: 2_000 });
});

test.each(['https://go.example.com/AbC1234', 'HTTPS://GO.EXAMPLE.COM/ABC1234', '0123456789', 'A1'.repeat(30)])(
  '%s has the segments that qrcode chooses',
  (text) => {
    expect(shortTextSegments(text)).toBeDefined();
    expectSameSegments(text);
  },
);

test('an empty text is left to qrcode, which rejects it', () => {
  expect(shortTextSegments('')).toBeUndefined();
});

test('texts that may need a version above 9 are left to qrcode', () => {
  expect(shortTextSegments('x'.repeat(180))).toEqual([{ data: 'x'.repeat(180), mode: 'byte' }]);
  expect(qrcode.create('x'.repeat(180), OPTIONS).version).toBe(9);
  expect(shortTextSegments('x'.repeat(181))).toBeUndefined();
});
