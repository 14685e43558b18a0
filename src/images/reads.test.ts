import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Resvg } from '@resvg/resvg-js';
import * as fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { prepareZXingModule, readBarcodes } from 'zxing-wasm/reader';
import { designWarning } from '../codes/design-warnings.ts';
import { matrixOf, QUIET_ZONE } from './matrix.ts';
import { renderPng } from './png.ts';
import { renderSvg } from './svg.ts';

/**
 * Pixels a module from which a reader reads every code. ZBar missed one in five at 2.0 to 2.2 and none of 4,000 from 2.4
 * on. ZXing missed one in 800 at 3 to 4, where modules are not whole pixels (ZBar read those), and none of 12,000 from
 * 4 on. At 4, a full code, 181 modules with its quiet zone, needs an image of 724 pixels; 512 do for version 26.
 */
const LEAST_PIXELS = { zbar: 3, zxing: 4 } as const;
const MOST_BYTES = 2_331;
const RUNS = 100;
const TIMEOUT_MS = 180_000;

const url = fc
  .tuple(fc.domain(), fc.string({ unit: fc.constantFrom(...'abcXYZ0189-_/.?=&%'), maxLength: 400 }))
  .map(([host, path]) => `https://${host}/${path}`);
/** Among them texts of digits or capitals only, which are encoded in modes of their own, and texts that need UTF-8. */
const text = fc.constantFrom('0123456789', 'ABC0189 $%*+-./:', 'abc ABC;:\\"\n', 'aé日本😀').chain((letters) => {
  const maxLength = Math.floor(MOST_BYTES / Math.max(...[...letters].map((letter) => Buffer.byteLength(letter))));
  return fc.string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength, size: 'max' });
});
const colour = fc.integer({ min: 0, max: 0xffffff }).map((value) => `#${value.toString(16).padStart(6, '0')}`);
const colours = fc
  .tuple(colour, colour)
  .filter(([foreground, background]) => designWarning(foreground, background) === undefined);

/** Small sizes are as likely as large ones: each doubling has the same share. */
const drawingFor = (reader: keyof typeof LEAST_PIXELS) =>
  fc
    .record({
      text: fc.oneof(url, text, fc.constant('x'.repeat(MOST_BYTES))),
      colours,
      format: fc.constantFrom('png', 'svg'),
      doublings: fc.double({ min: 0, max: 1, noNaN: true }),
    })
    .map(({ text, colours: [foreground, background], format, doublings }) => {
      const matrix = matrixOf(text);
      const least = Math.max(128, (matrix.modules + 2 * QUIET_ZONE) * LEAST_PIXELS[reader]);
      const size = Math.round(least * (4_096 / least) ** doublings);
      const png =
        format === 'png'
          ? renderPng(matrix, size, foreground, background)
          : rasterised(renderSvg(matrix, { foreground, background, title: text }), size);
      return { text, format, size, foreground, background, png };
    });

const hasZbar = spawnSync('zbarimg', ['--version']).status === 0;

beforeAll(() => {
  // Without this it would load its module from a content network.
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

// Two readers of separate origin, because one alone can be lenient in the same way as the encoder is wrong.
test('ZBar reads every code as exactly what was encoded', { timeout: TIMEOUT_MS }, (context) => {
  if (!hasZbar && !process.env.CI) context.skip('zbarimg is not installed: only ZXing has read the codes');
  fc.assert(
    fc.property(drawingFor('zbar'), ({ text, png }) => {
      expect(readByZbar(png)).toBe(text);
    }),
    { numRuns: RUNS },
  );
});

/** As a PNG of `size` pixels; the readers take no SVG. */
function rasterised(svg: string, size: number): Buffer {
  return new Resvg(svg, { fitTo: { mode: 'width', value: size } }).render().asPng();
}

/** As raw bytes: otherwise ZBar guesses a character set, and takes UTF-8 with few letters beyond ASCII for Big5. */
function readByZbar(png: Buffer): string {
  const only = ['-Sdisable', '-Sqrcode.enable', '-Sbinary'];
  return execFileSync('zbarimg', ['--quiet', '--raw', '--nodbus', ...only, '-'], { input: png }).toString();
}
