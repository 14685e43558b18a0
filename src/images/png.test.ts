import { PNG } from 'pngjs';
import qrcode from 'qrcode';
import { expect, test } from 'vitest';
import { type Matrix, QUIET_ZONE } from '../../common/qr/matrix.ts';
import { renderPng } from './png.ts';

const DARK = [0x12, 0x34, 0x56] as const;
const LIGHT = [0xfe, 0xdc, 0xba] as const;
const VERSIONS = Array.from({ length: 40 }, (_, index) => index + 1);

/** Every version at common sizes; at the largest, where each takes a second, only a few. */
const CASES = [
  // From version 27 on a module is narrower than a pixel here: unreadable, but still drawn correctly.
  { size: 128, versions: VERSIONS },
  { size: 300, versions: VERSIONS },
  { size: 512, versions: VERSIONS },
  { size: 4_096, versions: [1, 20, 40] },
];

test.each(CASES)('at $size pixels every module has its colour and edges within a pixel', ({ size, versions }) => {
  expect(versions.filter((version) => isMisdrawn(version, size))).toEqual([]);
});

test('the header has the requested size and one bit per pixel, and the palette is background and foreground', () => {
  for (const size of [128, 300, 512, 4_096]) {
    const png = renderPng(matrixOfVersion(3), size, '#123456', '#fedcba');
    expect(chunks(png).map(({ type }) => type)).toEqual(['IHDR', 'PLTE', 'IDAT', 'IEND']);
    const [header, palette] = chunks(png).map(({ data }) => data);
    expect([header?.readUInt32BE(0), header?.readUInt32BE(4)]).toEqual([size, size]);
    expect([...(header?.subarray(8) ?? [])]).toEqual([1, 3, 0, 0, 0]);
    expect([...(palette ?? [])]).toEqual([...LIGHT, ...DARK]);
  }
});

test('the quiet zone is two modules on every side', () => {
  const matrix = matrixOfVersion(5);
  const pixels = 7;
  const size = (matrix.modules + 4) * pixels;
  const { data } = PNG.sync.read(renderPng(matrix, size, '#000', '#fff'));
  const isDark = (x: number, y: number) => data[(y * size + x) * 4] === 0;
  const all = Array.from({ length: size }, (_, at) => at);
  for (const offset of all.filter((at) => at < 2 * pixels || at >= size - 2 * pixels)) {
    expect(all.some((at) => isDark(at, offset) || isDark(offset, at))).toBe(false);
  }
  // Finder patterns are dark at their outer edge, in three corners.
  const first = 2 * pixels;
  const last = size - 2 * pixels - 1;
  expect([isDark(first, first), isDark(last, first), isDark(first, last)]).toEqual([true, true, true]);
});

test('#rgb is #rrggbb with each digit doubled', () => {
  const matrix = matrixOfVersion(1);
  expect(renderPng(matrix, 128, '#1aF', '#fec')).toEqual(renderPng(matrix, 128, '#11aaff', '#FFEECC'));
});

function matrixOfVersion(version: number): Matrix {
  const { modules } = qrcode.create(`v${version}`, { version, errorCorrectionLevel: 'M' });
  return { modules: modules.size, dark: modules.data };
}

function isMisdrawn(version: number, size: number): boolean {
  const matrix = matrixOfVersion(version);
  const { data } = PNG.sync.read(renderPng(matrix, size, '#123456', '#fedcba'));
  return firstMisdrawn(matrix, size, data) !== undefined;
}

/**
 * The first pixel whose colour differs from that of the module over its centre; undefined if none. Edges are then at
 * most half a pixel off. A centre on an edge may belong to either side.
 */
function firstMisdrawn({ modules, dark }: Matrix, size: number, rgba: Buffer): string | undefined {
  const across = modules + 2 * QUIET_ZONE;
  const isModuleDark = (column: number, row: number) =>
    column >= 0 && column < modules && row >= 0 && row < modules && dark[row * modules + column] === 1;
  const centres = Array.from({ length: size }, (_, pixel) => {
    const at = ((pixel + 0.5) * across) / size - QUIET_ZONE;
    return Number.isInteger(at) ? [at - 1, at] : [Math.floor(at)];
  });
  for (const [y, rows] of centres.entries()) {
    for (const [x, columns] of centres.entries()) {
      const offset = (y * size + x) * 4;
      const isDark = rgba[offset] === DARK[0];
      const [red, green, blue] = isDark ? DARK : LIGHT;
      const coloured = rgba[offset] === red && rgba[offset + 1] === green && rgba[offset + 2] === blue;
      const placed = rows.some((row) => columns.some((column) => isModuleDark(column, row) === isDark));
      if (!coloured || !placed) return `${x},${y}`;
    }
  }
  return undefined;
}

function chunks(png: Buffer): { type: string; data: Buffer }[] {
  const found = [];
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    found.push({ type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) });
    at += length + 12;
  }
  return found;
}
