/**
 * How many images are drawn in a second on one core and how large they are, beside the PNG writer of `qrcode` and
 * pngjs, which is given the same pixels in gray.
 *
 *   node test/bench/images.ts [rounds]      7 unless told
 *
 * A scan URL is drawn from text to file. Rounds of all ways take turns, so that none has the machine to itself; the
 * figure is the median of its rounds.
 */
import { PNG } from 'pngjs';
import qrcode from 'qrcode';
import { matrixOf, QUIET_ZONE } from '../../src/images/matrix.ts';
import { renderPng } from '../../src/images/png.ts';
import { renderSvg } from '../../src/images/svg.ts';

const ROUNDS = Number(process.argv[2] ?? 7);
const ROUND_MS = 150;
const TEXT = 'https://go.example.com/AbC1234';
const SIZES = [256, 512, 1_024, 4_096];
const [DARK, LIGHT] = ['#123456', '#ffeedd'];

interface Way {
  readonly name: string;
  draw(): Promise<Uint8Array> | Uint8Array;
}

const ways: readonly Way[] = [
  ...SIZES.flatMap((size): Way[] => [
    { name: `${size} px, own writer`, draw: () => renderPng(matrixOf(TEXT), size, DARK, LIGHT) },
    { name: `${size} px, qrcode.toBuffer`, draw: () => drawnByQrcode(size) },
    { name: `${size} px, pngjs, gray`, draw: () => drawnByPngjs(size) },
  ]),
  {
    name: 'SVG',
    draw: () => Buffer.from(renderSvg(matrixOf(TEXT), { foreground: DARK, background: LIGHT, title: 'x' })),
  },
];

const rates = new Map(ways.map(({ name }) => [name, [] as number[]]));
for (const way of ways) await way.draw();
for (let round = 0; round < ROUNDS; round++) {
  for (const way of ways) rates.get(way.name)?.push(await rateOf(way));
}
const table = await Promise.all(
  ways.map(async ({ name, draw }) => {
    const sorted = (rates.get(name) ?? []).toSorted((a, b) => a - b);
    const median = sorted[sorted.length >> 1] ?? 0;
    return { image: name, 'images/s': Number(median.toPrecision(3)), bytes: (await draw()).length };
  }),
);
console.table(table);

/** Images a second, over at least `ROUND_MS`. */
async function rateOf({ draw }: Way): Promise<number> {
  const start = performance.now();
  let drawn = 0;
  do {
    await draw();
    drawn++;
  } while (performance.now() - start < ROUND_MS);
  return (drawn / (performance.now() - start)) * 1_000;
}

function drawnByQrcode(width: number): Promise<Buffer> {
  return qrcode.toBuffer(TEXT, {
    errorCorrectionLevel: 'M',
    margin: QUIET_ZONE,
    width,
    color: { dark: `${DARK}ff`, light: `${LIGHT}ff` },
  });
}

/** pngjs writes neither a palette nor single bits: eight bits of gray, which it takes as they are, are its least. */
function drawnByPngjs(size: number): Buffer {
  const { modules, dark } = matrixOf(TEXT);
  const across = modules + 2 * QUIET_ZONE;
  const edge = (module: number) => Math.round(((module + QUIET_ZONE) * size) / across);
  const png = new PNG({ width: size, height: size });
  png.data = Buffer.alloc(size * size, 0xff);
  for (let row = 0; row < modules; row++) {
    const line = Buffer.alloc(size, 0xff);
    for (let column = 0; column < modules; column++) {
      if (dark[row * modules + column]) line.fill(0, edge(column), edge(column + 1));
    }
    for (let y = edge(row); y < edge(row + 1); y++) line.copy(png.data, y * size);
  }
  return PNG.sync.write(png, { colorType: 0, inputColorType: 0, inputHasAlpha: false });
}
