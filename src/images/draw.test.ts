import type { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { draw } from './draw.ts';
import { type Drawing, drawn } from './drawing.ts';

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

test('images asked for at once are each what was asked for', async () => {
  const drawings = Array.from({ length: 50 }, (_, n): Drawing => {
    return { ...DRAWING, text: `${DRAWING.text}${n}`, format: n % 2 ? 'svg' : 'png', size: 128 + n };
  });
  const images = await Promise.all(drawings.map(draw));
  expect(images.map((image) => image.toString('base64'))).toEqual(
    drawings.map((drawing) => drawn(drawing).toString('base64')),
  );
});

test('what cannot be drawn fails alone', async () => {
  const tooLong = { ...DRAWING, text: 'x'.repeat(5_000) };
  const [before, wrong, after] = await Promise.allSettled([draw(DRAWING), draw(tooLong), draw(DRAWING)]);
  expect(wrong).toMatchObject({ status: 'rejected', reason: expect.any(Error) });
  const good = { status: 'fulfilled', value: drawn(DRAWING) };
  expect([before, after]).toEqual([good, good]);
});

test('a thread that dies fails what it had in hand, and the next drawing starts another', async () => {
  const inHand = Array.from({ length: 20 }, () => draw(DRAWING));
  const [outcomes] = await Promise.all([Promise.allSettled(inHand), threads.at(-1)?.terminate()]);
  expect(outcomes.at(-1)).toMatchObject({ reason: new Error('the thread that draws images has ended') });
  const { length } = threads;
  expect(await draw(DRAWING)).toEqual(drawn(DRAWING));
  expect(threads).toHaveLength(length + 1);
});
