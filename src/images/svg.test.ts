import { Resvg } from '@resvg/resvg-js';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Matrix } from '../../common/qr/matrix.ts';
import { matrixOf } from './matrix.ts';
import { renderSvg } from './svg.ts';

const COLOURS = { foreground: '#123456', background: '#fed' };

test.each([1, 30, 300, 2_331])('the path of a text of %i bytes draws its matrix inside the quiet zone', (length) => {
  const matrix = matrixOf('x'.repeat(length));
  expect(drawnBy(renderSvg(matrix, { ...COLOURS, title: 'x' }), matrix.modules)).toEqual(matrix);
});

test('a module is one unit, and the background covers the code and its quiet zone', () => {
  const svg = renderSvg(matrixOf('x'), { ...COLOURS, title: 'x' });
  expect(svg).toContain('viewBox="0 0 25 25"');
  expect(svg).toContain('d="M0 0h25v25H0z"');
});

test("the background and the modules have the code's colours", () => {
  const svg = renderSvg(matrixOf('x'), { ...COLOURS, title: 'x' });
  expect([...svg.matchAll(/fill="([^"]*)"/g)].map(([, colour]) => colour)).toEqual(['#fed', '#123456']);
});

test('a title cannot contain markup or control characters', () => {
  const svg = renderSvg(matrixOf('x'), { ...COLOURS, title: `</title><script>"Tom" & 'Ann'\u0000\n` });
  expect(/<title>(.*?)<\/title>/su.exec(svg)?.[1]).toBe(
    '&lt;/title&gt;&lt;script&gt;&quot;Tom&quot; &amp; &apos;Ann&apos;  ',
  );
});

test('any title gives well-formed XML', () => {
  const matrix = matrixOf('x');
  const unit = fc.oneof(
    fc.constantFrom(...'\ud800\udfff\ufffe\uffff\u0000\u0085&<]'.split('')),
    fc.string({ unit: 'binary' }),
  );
  fc.assert(
    fc.property(fc.array(unit, { maxLength: 20 }), (parts) => {
      expect(new Resvg(renderSvg(matrix, { ...COLOURS, title: parts.join('') })).width).toBe(25);
    }),
  );
});

/** Converts the runs of the last path back into modules; throws at anything that is not a run of whole modules. */
function drawnBy(svg: string, modules: number): Matrix {
  const path = [...svg.matchAll(/ d="([^"]*)"/g)].at(-1)?.[1] ?? '';
  const dark = new Uint8Array(modules * modules);
  for (const run of path.split('z').slice(0, -1)) {
    const [, x, y, width, back] = /^M(\d+) (\d+)h(\d+)v1h-(\d+)$/.exec(run)?.map(Number) ?? [];
    if (x === undefined || y === undefined || width === undefined || width !== back)
      throw new Error(`not a run: ${run}`);
    const start = (y - 2) * modules + x - 2;
    dark.fill(1, start, start + width);
  }
  return { modules, dark };
}
