import { Thread } from '../../common/runtime/thread.ts';
import type { Drawing } from './drawing.ts';

const thread = new Thread<Drawing, Uint8Array>(new URL('./draw.thread.ts', import.meta.url), 'draws images');

/**
 * Draws the image of a text in a thread: drawing takes up to 15 ms, which would delay every other call. Images are
 * drawn one at a time, in the order of the calls. Quick ones (`isQuick`) need no thread, unless thousands are drawn one
 * after another. Throws when the text is too long for a QR code.
 */
export async function draw(drawing: Drawing): Promise<Buffer> {
  const { buffer, byteOffset, length } = await thread.run(drawing);
  return Buffer.from(buffer, byteOffset, length);
}
