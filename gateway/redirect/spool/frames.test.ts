import fc from 'fast-check';
import { expect, test } from 'vitest';
import { frame } from './frame.fixture.ts';
import { MAX_PAYLOAD_BYTES, readFrames } from './frames.ts';

const payload = fc.uint8Array({ minLength: 1, maxLength: 300 });

function texts(payloads: readonly Uint8Array[]): string[] {
  return payloads.map((each) => Buffer.from(each).toString());
}

test('payloads are read back, however the bytes are split into parts', () => {
  fc.assert(
    fc.property(fc.array(payload, { maxLength: 20 }), fc.nat(2_000), (payloads, cut) => {
      const bytes = Buffer.concat(payloads.map(frame));
      const first = readFrames(bytes.subarray(0, cut), cut >= bytes.length ? 'nothing' : 'more');
      const second = readFrames(bytes.subarray(first.read), 'nothing');
      expect([...first.payloads, ...second.payloads].map((each) => [...each])).toEqual(
        payloads.map((each) => [...each]),
      );
      expect(first.damaged + second.damaged).toBe(0);
    }),
  );
});

test('a torn last frame is skipped, whatever is missing of it', () => {
  const whole = frame(Buffer.from('whole'));
  const torn = frame(Buffer.from('torn'));
  for (let length = 1; length < torn.length; length++) {
    const read = readFrames(Buffer.concat([whole, torn.subarray(0, length)]), 'nothing');
    expect(texts(read.payloads)).toEqual(['whole']);
    expect(read).toMatchObject({ damaged: length, read: whole.length + length });
  }
});

test('a damaged byte anywhere costs only one frame', () => {
  const frames = ['one', 'two', 'three'].map((text) => frame(Buffer.from(text)));
  const [before = Buffer.alloc(0), damaged = Buffer.alloc(0)] = frames;
  for (let at = 0; at < damaged.length; at++) {
    const bytes = Buffer.concat(frames);
    bytes[before.length + at] = (bytes[before.length + at] ?? 0) ^ 0xff;
    const read = readFrames(bytes, 'nothing');
    expect(texts(read.payloads)).toEqual(['one', 'three']);
    expect(read.damaged).toBe(damaged.length);
  }
});

test('a segment that is being written is read up to the last complete frame', () => {
  const [whole, torn] = [frame(Buffer.from('whole')), frame(Buffer.from('torn'))];
  for (const unwritten of [torn.subarray(0, 5), Buffer.alloc(50), torn.fill(0, 10)]) {
    const read = readFrames(Buffer.concat([whole, unwritten]), 'open');
    expect(texts(read.payloads)).toEqual(['whole']);
    expect(read).toMatchObject({ damaged: 0, read: whole.length });
  }
});

test('a hole of zeros holds no frames', () => {
  expect(readFrames(Buffer.alloc(100), 'nothing')).toEqual({ payloads: [], read: 100, damaged: 100 });
});

test('the longest payload is read back', () => {
  const [longest] = readFrames(frame(Buffer.alloc(MAX_PAYLOAD_BYTES, 7)), 'nothing').payloads;
  expect(longest).toHaveLength(MAX_PAYLOAD_BYTES);
});
