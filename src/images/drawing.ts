import { matrixOf } from './matrix.ts';
import { renderPng } from './png.ts';
import { renderSvg } from './svg.ts';

/** Pixels on a side. Source: docs/contract.md, "Bodies and envelopes". */
const SIZE = { standard: 512, least: 128, most: 4_096 } as const;

/** What an image may be drawn as. */
export type Format = 'png' | 'svg';

/** All that an image is made of. `title` stands in an SVG, `size` decides a PNG. */
export interface Drawing {
  readonly text: string;
  readonly format: Format;
  readonly size: number;
  readonly foreground: string;
  readonly background: string;
  readonly title: string;
}

/** The size that is drawn for what was asked: out of range is clamped. */
export function sizeOf(asked: number | undefined): number {
  return Math.min(SIZE.most, Math.max(SIZE.least, asked ?? SIZE.standard));
}

/** The image. Throws when the text fits no code. */
export function drawn(drawing: Drawing): Buffer {
  const matrix = matrixOf(drawing.text);
  const { format, size, foreground, background } = drawing;
  return format === 'svg' ? Buffer.from(renderSvg(matrix, drawing)) : renderPng(matrix, size, foreground, background);
}
