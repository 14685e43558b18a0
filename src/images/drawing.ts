import { clamp, IMAGE_PIXELS } from '../../common/contract/ranges.ts';
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

/** Draws the image. Throws when the text is too long for a QR code. */
export function drawn(drawing: Drawing): Buffer {
  const matrix = matrixOf(drawing.text);
  const { format, size, foreground, background } = drawing;
  return format === 'svg' ? Buffer.from(renderSvg(matrix, drawing)) : renderPng(matrix, size, foreground, background);
}
