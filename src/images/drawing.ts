import { clamp, IMAGE_PIXELS } from '../../common/contract/ranges.ts';
import { SMALL_PIXELS } from '../../common/contract/small-image.ts';
import { matrixOf } from './matrix.ts';
import { renderPng } from './png.ts';
import { renderSvg } from './svg.ts';

/** Image formats. */
export type Format = 'png' | 'svg';

/** Everything an image depends on: `title` only affects SVGs, `size` only PNGs. */
export interface Drawing {
  readonly text: string;
  readonly format: Format;
  readonly size: number;
  readonly foreground: string;
  readonly background: string;
  readonly title: string;
}

/** The requested size in pixels, clamped to the allowed range. */
export function sizeOf(requested: number | undefined): number {
  return clamp(requested, IMAGE_PIXELS);
}

/** Maximum length in bytes of texts whose code takes about as long to create as a small image takes to draw. */
const SHORT_TEXT = 128;

/**
 * Whether drawing an image takes at most 0.7 ms (an ordinary one of 512 px takes 0.2 to 0.3), as long as other calls
 * block the event loop. Passing it to a thread and back would cost 30 to 40 µs more CPU time, and on busy processors a
 * wait for the thread to be scheduled.
 */
export function isQuick({ text, format, size }: Drawing): boolean {
  return (format === 'svg' || size <= SMALL_PIXELS) && Buffer.byteLength(text) <= SHORT_TEXT;
}

/** Draws the image. Throws when the text is too long for a QR code. */
export function drawSync(drawing: Drawing): Buffer {
  const matrix = matrixOf(drawing.text);
  const { format, size, foreground, background } = drawing;
  return format === 'svg' ? Buffer.from(renderSvg(matrix, drawing)) : renderPng(matrix, size, foreground, background);
}
