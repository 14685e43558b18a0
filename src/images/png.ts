import { constants, crc32, deflateSync } from 'node:zlib';
import { parseColour } from '../../common/codes/colour.ts';
import { type Matrix, QUIET_ZONE } from '../../common/qr/matrix.ts';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const END = chunk('IEND', Buffer.alloc(0));

/** Filter types of PNG (RFC 2083 §6): a row unchanged, and a row as its difference from the one above. */
const FILTER_NONE = 0;
const FILTER_UP = 2;

/**
 * From this size on a row is about as long as deflate's longest match (258 bytes), so that searching for repeated rows
 * costs several times as much as searching for runs of one byte, and makes an ordinary code no smaller.
 */
const RLE_FROM_PX = 2_048;

/**
 * zlib's highest level that does not look for a longer match within a match: a third to a fifth of the default's time,
 * for a third more bytes.
 */
const FAST_LEVEL = 3;

/**
 * A PNG of `size` × `size` pixels with one bit per pixel and the code's two colours as its palette. Edges of modules
 * are rounded to whole pixels, so every module is within one pixel of its true width. Rows that repeat the one above
 * are all zeros under the Up filter, which deflate compresses to almost nothing. Why not a package, with measurements:
 * docs/decisions/2026-11-20-png-encoder.md.
 */
export function renderPng(matrix: Matrix, size: number, foreground: string, background: string): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  // One bit per pixel, indexed colour; compression, filter and interlace methods are 0.
  header.set([1, 3, 0, 0, 0], 8);
  const palette = Buffer.from([...parseColour(background), ...parseColour(foreground)]);
  const options = size < RLE_FROM_PX ? { level: FAST_LEVEL } : { strategy: constants.Z_RLE };
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('PLTE', palette),
    chunk('IDAT', deflateSync(scanLines(matrix, size), options)),
    END,
  ]);
}

/**
 * Buffer for scan lines, reused between images: allocating two megabytes each time would cost more than deflating them.
 */
let scratch = Buffer.alloc(0);

/**
 * Scan lines: a filter byte and one bit per pixel, 1 for dark. The first line of each row of modules is unfiltered. The
 * result is valid until the next call.
 */
function scanLines({ modules, dark }: Matrix, size: number): Buffer {
  const across = modules + 2 * QUIET_ZONE;
  const edge = (module: number) => Math.round(((module + QUIET_ZONE) * size) / across);
  const stride = 1 + Math.ceil(size / 8);
  if (scratch.length < stride * size) scratch = Buffer.alloc(stride * size);
  const lines = scratch.subarray(0, stride * size).fill(0);
  for (let y = 0; y < size; y++) lines[y * stride] = FILTER_UP;
  lines[0] = FILTER_NONE;
  // The row after the last is the quiet zone below. Of several rows that start on the same pixel, the last is drawn.
  for (let row = 0; row <= modules; row++) {
    const line = lines.subarray(edge(row) * stride, (edge(row) + 1) * stride).fill(0);
    line[0] = FILTER_NONE;
    for (let column = 0; row < modules && column < modules; column++) {
      const start = column;
      while (column < modules && dark[row * modules + column]) column++;
      if (column > start) fill(line, edge(start), edge(column));
    }
  }
  return lines;
}

/** Sets the pixels `from` (included) to `to` (not included); pixel 0 is the first after the filter byte. */
function fill(line: Buffer, from: number, to: number): void {
  for (let x = from; x < to; ) {
    const at = 1 + (x >> 3);
    if ((x & 7) === 0 && to - x >= 8) {
      line[at] = 0xff;
      x += 8;
    } else {
      line[at] = (line[at] ?? 0) | (0x80 >> (x & 7));
      x++;
    }
  }
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  body.copy(framed, 4);
  framed.writeUInt32BE(crc32(body), body.length + 4);
  return framed;
}
