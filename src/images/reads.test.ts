import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import { prepareZXingModule, readBarcodes } from 'zxing-wasm/reader';
import { designWarning } from './contrast.ts';
import { matrixOf, QUIET_ZONE } from './matrix.ts';
import { renderPng } from './png.ts';

/** Pixels a module that every reader asks for at least. */
const LEAST_PIXELS = 3;
const RUNS = 40;

const url = fc
  .tuple(fc.domain(), fc.string({ unit: fc.constantFrom(...'abcXYZ0189-_/.?=&%'), maxLength: 400 }))
  .map(([host, path]) => `https://${host}/${path}`);
/** Among them texts of digits or capitals only, which are encoded in modes of their own, and texts that need UTF-8. */
const text = fc.oneof(
  ...['0123456789', 'ABC0189 $%*+-./:', 'abc ABC;:\\"\n', 'aé日本😀'].map((letters) =>
    fc.string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: 250 }),
  ),
);
const colour = fc.integer({ min: 0, max: 0xffffff }).map((value) => `#${value.toString(16).padStart(6, '0')}`);
const colours = fc
  .tuple(colour, colour)
  .filter(([foreground, background]) => designWarning(foreground, background) === undefined);

const drawing = fc
  .record({ text: fc.oneof(url, text), colours, spare: fc.double({ min: 0, max: 1, noNaN: true }) })
  .map(({ text, colours: [foreground, background], spare }) => {
    const matrix = matrixOf(text);
    const least = Math.max(128, (matrix.modules + 2 * QUIET_ZONE) * LEAST_PIXELS);
    const size = Math.round(least + spare * 400);
    return { text, size, foreground, background, png: renderPng(matrix, size, foreground, background) };
  });

const hasZbar = spawnSync('zbarimg', ['--version']).status === 0;

beforeAll(() => {
  // Without this it would load its module from a content network.
  const wasm = fileURLToPath(import.meta.resolve('zxing-wasm/reader/zxing_reader.wasm'));
  prepareZXingModule({ overrides: { wasmBinary: new Uint8Array(readFileSync(wasm)).buffer } });
});

test('ZXing reads every code as exactly what was encoded, at error correction level M', async () => {
  await fc.assert(
    fc.asyncProperty(drawing, async ({ text, png }) => {
      const [code, ...others] = await readBarcodes(new Uint8Array(png), { formats: ['QRCode'] });
      expect([code?.text, code?.ecLevel, others.length]).toEqual([text, 'M', 0]);
    }),
    { numRuns: RUNS },
  );
});

// Two readers of separate origin, because one alone can be lenient in the same way as the encoder is wrong.
test('ZBar reads every code as exactly what was encoded', (context) => {
  if (!hasZbar && !process.env.CI) context.skip('zbarimg is not installed: only ZXing has read the codes');
  fc.assert(
    fc.property(drawing, ({ text, png }) => {
      expect(readByZbar(png)).toBe(text);
    }),
    { numRuns: RUNS },
  );
});

/** As raw bytes: otherwise ZBar guesses a character set, and takes UTF-8 with few letters beyond ASCII for Big5. */
function readByZbar(png: Buffer): string {
  const only = ['-Sdisable', '-Sqrcode.enable', '-Sbinary'];
  return execFileSync('zbarimg', ['--quiet', '--raw', '--nodbus', ...only, '-'], { input: png }).toString();
}
