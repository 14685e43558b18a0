import * as fc from 'fast-check';
import { PNG } from 'pngjs';
import { QUIET_ZONE } from '../../common/qr/matrix.ts';
import { matrixOf } from '../../src/images/matrix.ts';
import { renderPng } from '../../src/images/png.ts';
import { type Decoder, openCv, readByZbar, readByZxing } from '../decode/decoders.ts';
import { type RandomImage, randomImage } from '../decode/random-image.ts';

/**
 * `npm run bench:decode [seed]`: what share of random images each of three decoders reads as exactly the text that was
 * encoded, and every image that one of them does not. `PYTHON` is a Python with `opencv-python-headless`; without one,
 * OpenCV is left out.
 */
const IMAGES = 500;
/** Images in colours that the API warns about. */
const WARNED = 100;

const seed = Number(process.argv[2] ?? 20);
const cv = await openCv(process.env.PYTHON ?? 'python3');
const decoders: Readonly<Record<string, Decoder>> = {
  zbar: readByZbar,
  zxing: readByZxing,
  ...(cv ? { opencv: cv.read } : {}),
};
console.log(`Node ${process.version}; seed ${seed}${cv ? `; OpenCV ${cv.version}` : '; without OpenCV: set PYTHON'}`);
await readAll('Colours without a warning', fc.sample(fc.noBias(randomImage(false)), { seed, numRuns: IMAGES }));
await readAll('Colours with a warning', fc.sample(fc.noBias(randomImage(true)), { seed, numRuns: WARNED }));
cv?.stop();

async function readAll(title: string, images: readonly RandomImage[]): Promise<void> {
  const read: Record<string, number> = Object.fromEntries(Object.keys(decoders).map((name) => [name, 0]));
  const reasons = new Map<string, number>();
  let byNone = 0;
  const failures: string[] = [];
  for (const [n, image] of images.entries()) {
    const failed: string[] = [];
    for (const [name, decoder] of Object.entries(decoders)) {
      const text = await decoder(image.png);
      if (text === image.text) (read[name] as number)++;
      else failed.push(`${name} (${text === undefined ? '' : 'another text; '}${await explained(image, decoder)})`);
    }
    for (const reason of failed) reasons.set(reason, (reasons.get(reason) ?? 0) + 1);
    if (failed.length === Object.keys(decoders).length) byNone++;
    if (failed.length > 0) failures.push(`  ${n}: not read by ${failed.join(', ')}: ${described(image)}`);
  }
  console.log(`\n${title}: ${images.length} images, ${byNone} read by none`);
  for (const [name, count] of Object.entries(read)) {
    console.log(`  ${name}: ${count} (${((100 * count) / images.length).toFixed(1)} %)`);
  }
  for (const [reason, count] of [...reasons].sort(([, a], [, b]) => b - a))
    console.log(`  ${count} × not by ${reason}`);
  console.log(failures.join('\n'));
}

/** The change that lets the decoder read a code after all, of those that explain most failures. */
async function explained({ text, foreground, background, png }: RandomImage, decoder: Decoder): Promise<string> {
  const matrix = matrixOf(text);
  const across = matrix.modules + 2 * QUIET_ZONE;
  const size = PNG.sync.read(png).width;
  const remedies = {
    'in black on white': () => renderPng(matrix, size, '#000', '#fff'),
    'at 8 px per module': () => renderPng(matrix, across * 8, foreground, background),
    'at 4 px per module': () => renderPng(matrix, across * 4, foreground, background),
    'in black on white at 8 px per module': () => renderPng(matrix, across * 8, '#000', '#fff'),
    'in black on white at 8 px per module with twice the quiet zone': () =>
      withBorder(renderPng(matrix, across * 8, '#000', '#fff'), QUIET_ZONE * 8),
  };
  for (const [name, draw] of Object.entries(remedies)) if ((await decoder(draw())) === text) return `read ${name}`;
  return `${matrix.modules} modules, in no form`;
}

function withBorder(png: Buffer, pixels: number): Buffer {
  const inner = PNG.sync.read(png);
  const [width, height] = [inner.width + 2 * pixels, inner.height + 2 * pixels];
  const outer = new PNG({ width, height });
  outer.data.fill(0xff);
  PNG.bitblt(inner, outer, 0, 0, inner.width, inner.height, pixels, pixels);
  return PNG.sync.write(outer);
}

function described({
  kind,
  text,
  format,
  modules,
  modulePixels,
  foreground,
  background,
  warning,
}: RandomImage): string {
  const pixels = `${modules} modules of ${modulePixels.toFixed(2)} px`;
  const bytes = `${kind}, ${Buffer.byteLength(text)} bytes`;
  return `${bytes}, ${format}, ${pixels}, ${foreground} on ${background}${warning ? `: ${warning}` : ''}`;
}
