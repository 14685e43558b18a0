import { frameBytes, writeFrame } from './frames.ts';

/** A payload with its header, as in a segment. */
export function frame(payload: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(frameBytes(payload));
  writeFrame(framed, 0, payload);
  return framed;
}
