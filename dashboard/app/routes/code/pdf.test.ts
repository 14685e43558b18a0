import jsqr from 'jsqr';
import { expect, test } from 'vitest';
import { encode } from '../../../../common/qr/matrix.ts';
import { codePdf } from './pdf.ts';

// A CommonJS module whose types declare an ES module's default export.
const decode = (jsqr as unknown as { default?: typeof jsqr }).default ?? jsqr;

const TEXT = 'https://go.example.com/r/aB3dE5f';
const PIXELS_PER_MODULE = 4;

test('a PDF shows the code, with a quiet zone of four modules, at the exact width', () => {
  const matrix = encode(TEXT);
  const across = matrix.modules + 8;
  const pdf = codePdf(matrix, { width: across, title: 'Türe (1)', foreground: '#123', background: '#fdfdfb' });
  // A millimetre per module.
  const points = ((across * 72) / 25.4).toFixed(4);
  expect(pdf).toContain(`/MediaBox[0 0 ${points} ${points}]`);
  expect(pdf).toContain('0.0667 0.1333 0.2000 rg');

  const side = across * PIXELS_PER_MODULE;
  const pixels = new Uint8ClampedArray(side * side * 4).fill(255);
  for (const [, ...numbers] of pdf.matchAll(/^(\d+) (\d+) (\d+) (\d+) re$/gm)) {
    const [x = 0, y = 0, width = 0, height = 0] = numbers.map((number) => Number(number) * PIXELS_PER_MODULE);
    for (let row = side - y - height; row < side - y; row++) {
      for (let column = x; column < x + width; column++)
        pixels.fill(0, (row * side + column) * 4, (row * side + column) * 4 + 3);
    }
  }
  expect(decode(pixels, side, side)?.data).toBe(TEXT);
});

test('the table of a PDF says where its objects are', () => {
  const pdf = codePdf(encode(TEXT), { width: 40, title: 'Menu', foreground: '#000000', background: '#ffffff' });
  const start = Number(/startxref\n(\d+)\n%%EOF\n$/.exec(pdf)?.[1]);
  expect(pdf.slice(start, start + 5)).toBe('xref\n');
  const offsets = [...pdf.slice(start).matchAll(/^(\d{10}) 00000 n $/gm)].map(([, offset]) => Number(offset));
  expect(offsets.map((offset) => pdf.slice(offset, offset + 7))).toEqual(
    offsets.map((_, index) => `${index + 1} 0 obj`),
  );
  const [, length, content = ''] = /\/Length (\d+)>>stream\n([\s\S]*?)\nendstream/.exec(pdf) ?? [];
  expect(content.length).toBe(Number(length));
});
