/**
 * How many images are drawn per second on one CPU core and how large they are, compared with the PNG writer of `qrcode`
 * and with pngjs, which gets the same pixels in gray; then how many are served over REST, with the CPU time of each in
 * every process, and how long other requests take while 64 images of 4,096 px are requested concurrently.
 *
 *   npm run bench:images [-- rounds]      default: 7
 *
 * A scan URL is drawn from text to file. The rounds of all variants are interleaved, so that other load on the machine
 * affects all of them; figures are medians. Over REST, each image is of a different code than the 19,999 before it.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import pg from 'pg';
import { PNG } from 'pngjs';
import qrcode from 'qrcode';
import { QUIET_ZONE } from '../../common/qr/matrix.ts';
import { matrixOf } from '../../src/images/matrix.ts';
import { renderPng } from '../../src/images/png.ts';
import { renderSvg } from '../../src/images/svg.ts';
import { resetBurstLimits } from './burst-limits.ts';
import { IMAGE_PARTS, type ImageFigures, imageRequests } from './image-requests.ts';
import { median } from './median.ts';
import { startPlatform } from './platform.ts';

const ROUNDS = Number(process.argv[2] ?? 7);
const ROUND_MS = 150;
const WARM_UP = 2;
let requestCount = 0;
const TEXT = 'https://go.example.com/AbC1234';
const SIZES = [256, 512, 1_024, 4_096];
const [DARK, LIGHT] = ['#123456', '#ffeedd'];

interface Variant {
  readonly name: string;
  draw(): Promise<Uint8Array> | Uint8Array;
}

const variants: readonly Variant[] = [
  ...SIZES.flatMap((size): Variant[] => [
    { name: `${size} px, own writer`, draw: () => renderPng(matrixOf(TEXT), size, DARK, LIGHT) },
    { name: `${size} px, qrcode.toBuffer`, draw: () => drawnByQrcode(size) },
    { name: `${size} px, pngjs, gray`, draw: () => drawnByPngjs(size) },
  ]),
  {
    name: 'SVG',
    draw: () => Buffer.from(renderSvg(matrixOf(TEXT), { foreground: DARK, background: LIGHT, title: 'x' })),
  },
];

const rates = new Map(variants.map(({ name }) => [name, [] as number[]]));
for (const variant of variants) await variant.draw();
for (let round = 0; round < ROUNDS; round++) {
  for (const variant of variants) rates.get(variant.name)?.push(await rateOf(variant));
}
const table = await Promise.all(
  variants.map(async ({ name, draw }) => {
    return {
      image: name,
      'images/s': Number(median(rates.get(name) ?? []).toPrecision(3)),
      bytes: (await draw()).length,
    };
  }),
);
console.table(table);

await using platform = await startPlatform();
const { apiKey } = await platform.newAccount();
const pool = new pg.Pool({ connectionString: platform.databaseUrl, max: 4 });
const headers = { authorization: `Bearer ${apiKey}` };
const made = await fetch(`${platform.url}/api/v1/qr-codes`, {
  method: 'POST',
  headers,
  body: `{"target_url":"${TEXT}"}`,
});
const { id } = ((await made.json()) as { data: { id: string } }).data;

const requests = await imageRequests(platform, pool);
const queries = [...SIZES.map((size) => `size=${size}`), 'format=svg'];
const rounds = new Map(queries.map((query) => [query, [] as ImageFigures[]]));
// Warm-up: in processes that have just started, V8 still interprets the code.
for (let n = 0; n < WARM_UP; n++) for (const query of queries) await requests.round(query);
for (let n = 0; n < ROUNDS; n++) for (const query of queries) rounds.get(query)?.push(await requests.round(query));
requests.close();
console.table(
  queries.map((query) => {
    const of = (figure: keyof ImageFigures) => median((rounds.get(query) ?? []).map((round) => round[figure]));
    return {
      'over REST': query,
      'images/s': Math.round(of('rate')),
      p50: `${of('p50').toFixed(1)} ms`,
      p99: `${of('p99').toFixed(1)} ms`,
      ...Object.fromEntries(IMAGE_PARTS.map((part) => [`${part}, µs of CPU`, Math.round(of(part))])),
    };
  }),
);

const idle = await latenciesDuring(async () => void (await new Promise((resolve) => setTimeout(resolve, 3_000))));
const busy = await latenciesDuring(async () => {
  const url = `${platform.url}/api/v1/qr-codes/${id}/image?size=4096`;
  const load = fork('test/bench/image-load.ts', [JSON.stringify({ url, apiKey, concurrency: 64 })]);
  const emptying = setInterval(() => resetBurstLimits(pool), 50);
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  load.send('stop');
  await once(load, 'exit');
  clearInterval(emptying);
});
console.table([
  { 'another request': 'idle', ...idle },
  { 'another request': 'beside 64 × 4,096 px', ...busy },
]);
const peak = /VmHWM:\s+(\d+)/.exec(await readFile(`/proc/${platform.pids.core}/status`, 'utf8'))?.[1];
console.log(`peak memory of the core: ${Math.round(Number(peak) / 1_024)} MiB`);
await pool.end();

/** The latencies of reads of the same code while `work` runs. */
async function latenciesDuring(work: () => Promise<void>): Promise<{ p50: string; p99: string }> {
  const times: number[] = [];
  let finished = false;
  const probe = (async () => {
    while (!finished) {
      const start = performance.now();
      await (await fetch(`${platform.url}/api/v1/qr-codes/${id}`, { headers })).arrayBuffer();
      times.push(performance.now() - start);
      if (requestCount++ % 50 === 0) await resetBurstLimits(pool);
    }
  })();
  await work();
  finished = true;
  await probe;
  times.sort((one, other) => one - other);
  const at = (share: number) => `${(times[Math.floor(times.length * share)] ?? 0).toFixed(1)} ms`;
  return { p50: at(0.5), p99: at(0.99) };
}

/** Images per second, over at least `ROUND_MS`. */
async function rateOf({ draw }: Variant): Promise<number> {
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

/** pngjs can write neither a palette nor single bits; its smallest format is eight bits of gray. */
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
