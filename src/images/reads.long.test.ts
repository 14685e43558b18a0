import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Resvg } from '@resvg/resvg-js';
import * as fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { prepareZXingModule, readBarcodes } from 'zxing-wasm/reader';
import { QUIET_ZONE } from '../../common/qr/matrix.ts';
import { designWarning } from '../codes/fields/design-warnings.ts';
import { matrixOf } from './matrix.ts';
import { renderPng } from './png.ts';
import { renderSvg } from './svg.ts';

/**
 * Minimum pixels per module at which a scanner reads every code. ZBar missed one in five at 2.0 to 2.2 and none of
 * 4,000 from 2.4 on. ZXing missed one in 800 at 3 to 4, where modules are not whole pixels (ZBar read those), and none
 * of 12,000 from 4 on. At 4, the largest code, 181 modules with its quiet zone, needs 724 pixels; 512 suffice for
 * version 26.
 */
const MIN_PIXELS = { zbar: 3, zxing: 4 } as const;
const MAX_BYTES = 2_331;
const RUNS = 40;
const TIMEOUT_MS = 180_000;

const url = fc
  .tuple(fc.domain(), fc.string({ unit: fc.constantFrom(...'abcXYZ0189-_/.?=&%'), maxLength: 400 }))
  .map(([host, path]) => `https://${host}/${path}`);
/** Includes texts of digits or capitals only, which have their own encoding modes, and texts that need UTF-8. */
const text = fc.constantFrom('0123456789', 'ABC0189 $%*+-./:', 'abc ABC;:\\"\n', 'aé日本😀').chain((letters) => {
  const maxLength = Math.floor(MAX_BYTES / Math.max(...[...letters].map((letter) => Buffer.byteLength(letter))));
  return fc.string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength, size: 'max' });
});
const colour = fc.integer({ min: 0, max: 0xffffff }).map((value) => `#${value.toString(16).padStart(6, '0')}`);
const colours = fc
  .tuple(colour, colour)
  .filter(([foreground, background]) => designWarning(foreground, background) === undefined);

/** Small sizes are as likely as large ones: each doubling has the same share. */
const drawingFor = (decoder: keyof typeof MIN_PIXELS) =>
  fc
    .record({
      text: fc.oneof(url, text, fc.constant('x'.repeat(MAX_BYTES))),
      colours,
      format: fc.constantFrom('png', 'svg'),
      doublings: fc.double({ min: 0, max: 1, noNaN: true }),
    })
    .map(({ text, colours: [foreground, background], format, doublings }) => {
      const matrix = matrixOf(text);
      const min = Math.max(128, (matrix.modules + 2 * QUIET_ZONE) * MIN_PIXELS[decoder]);
      const size = Math.round(min * (4_096 / min) ** doublings);
      const png =
        format === 'png'
          ? renderPng(matrix, size, foreground, background)
          : rasterised(renderSvg(matrix, { foreground, background, title: text }), size);
      return { text, format, size, foreground, background, png };
    });

const hasZbar = spawnSync('zbarimg', ['--version']).status === 0;

beforeAll(() => {
  // By default it downloads its module from a CDN.
  const wasm = fileURLToPath(import.meta.resolve('zxing-wasm/reader/zxing_reader.wasm'));
  prepareZXingModule({ overrides: { wasmBinary: new Uint8Array(readFileSync(wasm)).buffer } });
});

test('ZXing reads every code as exactly what was encoded, at error correction level M', {
  timeout: TIMEOUT_MS,
}, async () => {
  await fc.assert(
    fc.asyncProperty(drawingFor('zxing'), async ({ text, png }) => {
      const [code, ...others] = await readBarcodes(new Uint8Array(png), { formats: ['QRCode'] });
      expect([code?.text, code?.ecLevel, others.length]).toEqual([text, 'M', 0]);
    }),
    { numRuns: RUNS },
  );
});

// Two independent scanners, because one alone may tolerate the encoder's mistakes.
test('ZBar reads every code as exactly what was encoded', { timeout: TIMEOUT_MS }, (context) => {
  if (!hasZbar && !process.env.CI) context.skip('zbarimg is not installed: the codes were read only by ZXing');
  fc.assert(
    fc.property(drawingFor('zbar'), ({ text, png }) => {
      expect(readByZbar(png)).toBe(text);
    }),
    { numRuns: RUNS },
  );
});

/** Converts to a PNG of `size` pixels: the scanners do not read SVG. */
function rasterised(svg: string, size: number): Buffer {
  return new Resvg(svg, { fitTo: { mode: 'width', value: size } }).render().asPng();
}

/** Reads raw bytes: otherwise ZBar guesses the character set and takes UTF-8 with few non-ASCII letters for Big5. */
function readByZbar(png: Buffer): string {
  const options = ['-Sdisable', '-Sqrcode.enable', '-Sbinary'];
  return execFileSync('zbarimg', ['--quiet', '--raw', '--nodbus', ...options, '-'], { input: png }).toString();
}
