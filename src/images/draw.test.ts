import type { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { draw } from './draw.ts';
import { type Drawing, drawSync } from './drawing.ts';

const DRAWING: Drawing = {
  text: 'https://sign.example/r/AbC1234',
  format: 'png',
  size: 512,
  foreground: '#000000',
  background: '#ffffff',
  title: 'AbC1234',
};

const threads: Worker[] = [];
process.on('worker', (thread) => threads.push(thread));

test('concurrent requests each get their own image', async () => {
  const drawings = Array.from({ length: 50 }, (_, n): Drawing => {
    return { ...DRAWING, text: `${DRAWING.text}${n}`, format: n % 2 ? 'svg' : 'png', size: 128 + n };
  });
  const images = await Promise.all(drawings.map(draw));
  expect(images.map((image) => image.toString('base64'))).toEqual(
    drawings.map((drawing) => drawSync(drawing).toString('base64')),
  );
});

test('a drawing that fails does not affect others', async () => {
  const tooLong = { ...DRAWING, text: 'x'.repeat(5_000) };
  const [before, wrong, after] = await Promise.allSettled([draw(DRAWING), draw(tooLong), draw(DRAWING)]);
  expect(wrong).toMatchObject({ status: 'rejected', reason: expect.any(Error) });
  const good = { status: 'fulfilled', value: drawSync(DRAWING) };
  expect([before, after]).toEqual([good, good]);
});

test('a thread that dies fails its pending drawings, and the next drawing starts another thread', async () => {
  const pending = Array.from({ length: 20 }, () => draw(DRAWING));
  const [outcomes] = await Promise.all([Promise.allSettled(pending), threads.at(-1)?.terminate()]);
  expect(outcomes.at(-1)).toMatchObject({ reason: new Error('the thread that draws images has ended') });
  const { length } = threads;
  expect(await draw(DRAWING)).toEqual(drawSync(DRAWING));
  expect(threads).toHaveLength(length + 1);
});
