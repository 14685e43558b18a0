import { encode, type Matrix } from '../../common/qr/matrix.ts';
import { textSegments } from './text-segments.ts';

/**
 * Encodes a text, marked as UTF-8 unless it is ASCII. Throws above 2,331 bytes, the capacity of the largest version.
 */
export function matrixOf(text: string): Matrix {
  return encode(textSegments(text));
}
