import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import qrcode from 'qrcode';
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { prepareZXingModule, readBarcodes } from 'zxing-wasm/reader';
import { matrixOf } from './matrix.ts';
import { renderPng } from './png.ts';
import { textSegments } from './text-segments.ts';

beforeAll(() => {
  // By default it downloads its module from a CDN.
  const wasm = fileURLToPath(import.meta.resolve('zxing-wasm/reader/zxing_reader.wasm'));
  prepareZXingModule({ overrides: { wasmBinary: new Uint8Array(readFileSync(wasm)).buffer } });
});

const OPTIONS = { errorCorrectionLevel: 'M' } as const;

/** The text that ZXing reads, and whether the code says how it is encoded. */
async function read(text: string): Promise<{ text: string | undefined; marked: boolean | undefined }> {
  const matrix = matrixOf(text);
  const [code] = await readBarcodes(new Uint8Array(renderPng(matrix, 1_024, '#000', '#fff')), { formats: ['QRCode'] });
  return { text: code?.text, marked: code?.hasECI };
}

test('ASCII texts are encoded as qrcode does by itself, without an ECI', async () => {
  const ascii = fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 100 });
  fc.assert(
    fc.property(ascii, (text) => {
      expect(qrcode.create(textSegments(text), OPTIONS).segments).toEqual(qrcode.create(text, OPTIONS).segments);
    }),
  );
  const url = 'https://go.example/r/AbC1234';
  expect(await read(url)).toEqual({ text: url, marked: false });
  expect(() => matrixOf('')).toThrow();
});

test.each(['WIFI:T:WPA;S:Gäste;P:grüße-süß;;', 'é', '日本語', '😀 0123456789'])(
  '%s is marked as UTF-8',
  async (text) => {
    expect(await read(text)).toEqual({ text, marked: true });
  },
);

test.each(['https://go.example/r/AbC1234', 'a1'.repeat(1_165), 'ü1'.repeat(777)])(
  'the segments of %s are found without the search of qrcode, whose time grows with the square of their number',
  async (text) => {
    const search = vi.spyOn(createRequire(import.meta.url)('dijkstrajs') as { find_path(): unknown }, 'find_path');
    onTestFinished(() => search.mockRestore());
    expect((await read(text)).text).toBe(text);
    expect(search).not.toHaveBeenCalled();
  },
);

test('the longest texts fit, marked or not', async () => {
  const longest = 'ü'.repeat(1_165);
  expect(await read(longest)).toEqual({ text: longest, marked: true });
  // One byte more leaves no room for the mark.
  expect(await read(`${longest}x`)).toEqual({ text: `${longest}x`, marked: false });
  expect(qrcode.create(textSegments(longest), OPTIONS).version).toBe(40);
  expect(() => matrixOf(`${longest}xx`)).toThrow();
});
