import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { receiveBodies } from './call-bodies.ts';
import type { Session } from './session.ts';

test('chunks are copied: as objects, tiny ones take hundreds of bytes each', async () => {
  const text = 'abcdefghij'.repeat(1_000);
  const request = {
    headers: { 'content-length': String(text.length) },
    // One buffer for all, so that only copies of it differ.
    async *iterator() {
      const chunk = Buffer.alloc(1);
      for (const character of text) {
        chunk.write(character);
        yield chunk;
      }
    },
  } as unknown as IncomingMessage;
  using held = new DisposableStack();
  const body = await receiveBodies()(request, {} as Session, held, new AbortController().signal);
  expect(body.toString()).toBe(text);
  expect(body.buffer.byteLength).toBe(text.length);
});
