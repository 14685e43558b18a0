import { Worker } from 'node:worker_threads';
import type { Drawing } from './drawing.ts';

/** What the thread answers, in the order of what it was asked. */
export type Drawn = { readonly image: Uint8Array } | { readonly error: unknown };

interface Awaited {
  resolve(image: Buffer): void;
  reject(error: unknown): void;
}

let running: { draw(drawing: Drawing): Promise<Buffer> } | undefined;

/**
 * An image of a text, drawn in a thread of its own that is started with the first one: drawing takes 0.3 to 15 ms, and
 * every other call would wait for it. One at a time, in the order of the calls. Throws when the text fits no code.
 */
export function draw(drawing: Drawing): Promise<Buffer> {
  running ??= startThread();
  return running.draw(drawing);
}

/** A thread that dies takes what it was asked with it; the next drawing starts another. */
function startThread(): NonNullable<typeof running> {
  const thread = new Worker(new URL('./draw.thread.ts', import.meta.url));
  const awaited: Awaited[] = [];
  let why: unknown = new Error('the thread that draws images has ended');
  thread.on('message', (drawn: Drawn) => {
    const first = awaited.shift();
    if ('image' in drawn) first?.resolve(Buffer.from(drawn.image.buffer, drawn.image.byteOffset, drawn.image.length));
    else first?.reject(drawn.error);
    if (awaited.length === 0) thread.unref();
  });
  thread.on('error', (error) => {
    why = error;
  });
  thread.on('exit', () => {
    if (running === started) running = undefined;
    for (const { reject } of awaited) reject(why);
  });
  thread.unref();
  const started = {
    draw: (drawing: Drawing) =>
      new Promise<Buffer>((resolve, reject) => {
        awaited.push({ resolve, reject });
        thread.ref();
        thread.postMessage(drawing);
      }),
  };
  return started;
}
