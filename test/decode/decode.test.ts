import { spawnSync } from 'node:child_process';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Decoder, readByZbar, readByZxing } from './decoders.ts';
import { randomImage } from './random-image.ts';

/** A share of the images of `npm run bench:decode`; the same in every run. */
const SEED = 20;
const IMAGES = 60;
const TIMEOUT_MS = 120_000;

const hasZbar = spawnSync('zbarimg', ['--version']).status === 0;
const images = fc.sample(fc.noBias(randomImage(false)), { seed: SEED, numRuns: IMAGES });

/** The payloads that a decoder does not read exactly. */
async function misread(read: Decoder): Promise<unknown[]> {
  const wrong: unknown[] = [];
  for (const { png, ...image } of images) {
    const text = await read(png);
    if (text !== image.text) wrong.push({ ...image, read: text });
  }
  return wrong;
}

test('ZXing reads random images, in colours without a warning, as exactly the text', {
  timeout: TIMEOUT_MS,
}, async () => {
  expect(await misread(readByZxing)).toEqual([]);
});

test('ZBar does too, with its own guess at encodings', { timeout: TIMEOUT_MS }, async (context) => {
  if (!hasZbar && !process.env.CI) context.skip('zbarimg is not installed');
  expect(await misread(readByZbar)).toEqual([]);
});
