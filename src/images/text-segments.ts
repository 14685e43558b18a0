import { createRequire } from 'node:module';
import type { QRCodeSegment } from 'qrcode';
import { shortestSegments } from './segments.ts';

/** A part of a code's data in one mode, as `qrcode` encodes it: four bits of mode, a count, and the data. */
interface Segment {
  readonly mode: { readonly bit: number; readonly ccBits: readonly [number, number, number] };
  getLength(): number;
  getBitsLength(): number;
  write(buffer: unknown): void;
}

interface Segments {
  fromArray(given: readonly (QRCodeSegment | Segment | string)[]): Segment[];
}

/**
 * States that the text is UTF-8: mode ECI and, in place of a count, the assignment number 26. It has no data. Source:
 * ISO/IEC 18004, 7.4.3; AIM ITS/04-023.
 */
const ECI_UTF_8: Segment = {
  mode: { bit: 7, ccBits: [8, 8, 8] },
  getLength: () => 26,
  getBitsLength: () => 0,
  write() {},
};

/** The most bytes that fit the largest version after the twelve bits of the ECI; 2,331 do without it. */
const MAX_ECI_BYTES = 2_330;

const segments = createRequire(import.meta.url)('qrcode/lib/core/segments') as Segments;
const { fromArray } = segments;
// qrcode 1.5.4 knows no ECI, and would build a segment of its own from each one given.
segments.fromArray = (given) =>
  given.flatMap((segment) =>
    typeof segment !== 'string' && 'write' in segment ? [segment] : fromArray([segment as string]),
  );

/**
 * What `qrcode` is to encode for a text: what it would choose itself, or for a text that is not ASCII its bytes, marked
 * as UTF-8. Without the mark a decoder must guess: ZBar took UTF-8 with few letters outside ASCII for Big5. ASCII texts
 * need none, and their codes stay as they were; a text of the one length that has no room for the mark goes without it.
 */
export function textSegments(text: string): string | QRCodeSegment[] {
  const bytes = Buffer.from(text);
  const isUnmarked = /^\p{ASCII}*$/u.test(text) || bytes.length > MAX_ECI_BYTES;
  if (isUnmarked) return shortestSegments(text) ?? text;
  return [ECI_UTF_8 as unknown as QRCodeSegment, { data: bytes, mode: 'byte' }];
}
