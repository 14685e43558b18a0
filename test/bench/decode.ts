import * as fc from 'fast-check';
import { type RandomImage, randomImage } from '../decode/random-image.ts';
import { openCv, type Reader, readByZbar, readByZxing } from '../decode/readers.ts';

/**
 * `npm run bench:decode [seed]`: what share of random images each of three readers reads as exactly the text that was
 * encoded, and every image that one of them does not. `PYTHON` is a Python with `opencv-python-headless`; without one,
 * OpenCV is left out.
 */
const IMAGES = 500;
/** Images in colours that the API warns about. */
const WARNED = 100;

const seed = Number(process.argv[2] ?? 20);
const cv = await openCv(process.env.PYTHON ?? 'python3');
const readers: Readonly<Record<string, Reader>> = {
  zbar: readByZbar,
  zxing: readByZxing,
  ...(cv ? { opencv: cv.read } : {}),
};
console.log(`Node ${process.version}; seed ${seed}${cv ? `; OpenCV ${cv.version}` : '; without OpenCV: set PYTHON'}`);
await readAll('Colours without a warning', fc.sample(randomImage(false), { seed, numRuns: IMAGES }));
await readAll('Colours with a warning', fc.sample(randomImage(true), { seed, numRuns: WARNED }));
cv?.stop();

async function readAll(title: string, images: readonly RandomImage[]): Promise<void> {
  const read: Record<string, number> = Object.fromEntries(Object.keys(readers).map((name) => [name, 0]));
  let byNone = 0;
  const failures: string[] = [];
  for (const [n, image] of images.entries()) {
    const failed: string[] = [];
    for (const [name, reader] of Object.entries(readers)) {
      const text = await reader(image.png);
      if (text === image.text) (read[name] as number)++;
      else failed.push(text === undefined ? name : `${name} (another text)`);
    }
    if (failed.length === Object.keys(readers).length) byNone++;
    if (failed.length > 0) failures.push(`  ${n}: not read by ${failed.join(', ')}: ${described(image)}`);
  }
  console.log(`\n${title}: ${images.length} images, ${byNone} read by none`);
  for (const [name, count] of Object.entries(read)) {
    console.log(`  ${name}: ${count} (${((100 * count) / images.length).toFixed(1)} %)`);
  }
  console.log(failures.join('\n'));
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
