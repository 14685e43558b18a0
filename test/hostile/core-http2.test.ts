import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { coreUnderAttack, PORTS } from './core-under-attack.ts';
import {
  ACK,
  callHeaders,
  END_HEADERS,
  END_STREAM,
  frame,
  framesIn,
  headerBlock,
  healthCheck,
  number32,
  opening,
  setting,
  TYPES,
} from './http2-frames.ts';

/**
 * Clients that abuse HTTP/2 on both ports of a core, without a key: meanwhile calls of others are answered, and
 * afterwards resources return to normal.
 */
const core = coreUnderAttack();

/** How long a flood may go on until the server ends it, in ms. */
const ENDED_MS = 15_000;
const CONNECTIONS = 4;
/** Between calls of others, in ms: without it they would take most of the CPU time. */
const PAUSE_MS = 50;

const CHECK = 'grpc.health.v1.Health/Check';
const INITIAL_WINDOW_SIZE = 4;
const FRAME_BYTES = 16_384;
const streams = (from: number, count: number) => Array.from({ length: count }, (_, n) => 2 * (from + n) + 1);

/** A hundred calls per round, each with frames after its headers. */
function calls(behind: (stream: number) => Buffer): (round: number) => Buffer {
  const one = (stream: number) => [frame('headers', END_HEADERS, stream, callHeaders(CHECK)), behind(stream)];
  return (round) => Buffer.concat(streams(round * 100, 100).flatMap(one));
}

interface Flood {
  readonly first?: Buffer;
  again(round: number): Buffer;
}

/** What a client sends repeatedly after opening the connection. */
const FLOODS: Readonly<Record<string, Flood>> = {
  'calls that are reset at once': {
    again: calls((stream) => frame('reset', 0, stream, number32(8))),
  },
  'calls that the server has to reset': {
    again: calls((stream) => frame('windowUpdate', 0, stream, number32(0))),
  },
  settings: { again: () => repeated(frame('settings', 0, 0, setting(INITIAL_WINDOW_SIZE, 65_535))) },
  'unsolicited acknowledgements of settings': { again: () => repeated(frame('settings', ACK, 0)) },
  pings: { again: () => repeated(frame('ping', 0, 0, Buffer.alloc(8))) },
  'window updates': { again: () => repeated(frame('windowUpdate', 0, 0, number32(1))) },
  priorities: { again: () => repeated(frame('priority', 0, 1, Buffer.alloc(5, 0x10))) },
  'headers without end': {
    first: frame('headers', 0, 1, callHeaders(CHECK)),
    again: () => repeated(frame('continuation', 0, 1, headerBlock({ x: 'y'.repeat(1_000) })), 100),
  },
  'empty continuations': {
    first: frame('headers', 0, 1, callHeaders(CHECK)),
    again: () => repeated(frame('continuation', 0, 1)),
  },
  'empty data': {
    first: frame('headers', END_HEADERS, 1, callHeaders(CHECK)),
    again: () => repeated(frame('data', 0, 1)),
  },
  'data of a call that is refused': {
    first: frame('headers', END_HEADERS, 1, callHeaders('signpost.codes.v1.CodesService/ListCodes')),
    again: () => repeated(frame('data', 0, 1, Buffer.alloc(1_000)), 100),
  },
};

function repeated(bytes: Buffer, times = 1_000): Buffer {
  return Buffer.concat(Array<Buffer>(times).fill(bytes));
}

const ENDED = END_HEADERS | END_STREAM;
const requestOf = (headers: Readonly<Record<string, string>>) => frame('headers', ENDED, 1, headerBlock(headers));
const manyHeaders = (count: number, value: string) =>
  callHeaders(CHECK, Object.fromEntries(Array.from({ length: count }, (_, n) => [`x-${n}`, value])));

/** Sent after opening the connection; none is answered with a message. */
const INVALID: Readonly<Record<string, Buffer>> = {
  'a window of the connection that overflows': frame('windowUpdate', 0, 0, number32(0x7fffffff)),
  'a window of a call that overflows': Buffer.concat([
    frame('headers', END_HEADERS, 1, callHeaders(CHECK)),
    frame('windowUpdate', 0, 1, number32(0x7fffffff)),
  ]),
  'an initial window that is too large': frame('settings', 0, 0, setting(INITIAL_WINDOW_SIZE, 0xffffffff)),
  'a frame size that is too small': frame('settings', 0, 0, setting(5, 1)),
  'headers that are too large': inFrames(manyHeaders(200, 'y'.repeat(5_000))),
  'too many headers': inFrames(manyHeaders(3_000, '')),
  'a frame that is too large': frame('data', 0, 1, Buffer.alloc(100_000)),
  'data of no call': frame('data', 0, 7, Buffer.alloc(10)),
  'a call with an even number': healthCheck(2),
  'a method CONNECT': requestOf({ ':method': 'CONNECT', ':authority': 'a:1' }),
  'a method TRACE': requestOf({ ':method': 'TRACE', ':scheme': 'http', ':authority': 'a', ':path': '*' }),
  'a call without an authority': requestOf({ ':method': 'POST', ':scheme': 'http', ':path': `/${CHECK}` }),
  'a path with a control character': requestOf({
    ':method': 'POST',
    ':scheme': 'http',
    ':authority': ' %',
    ':path': '\x01',
  }),
  'a call with an encoding, a timeout and a binary header that are none': frame(
    'headers',
    ENDED,
    1,
    callHeaders(CHECK, { 'grpc-timeout': 'x'.repeat(100), 'grpc-encoding': 'zzz', 'x-bin': '***' }),
  ),
};

/** A header block split into frames. */
function inFrames(block: Buffer): Buffer {
  const frames: Buffer[] = [];
  for (let at = 0; at < block.length; at += FRAME_BYTES) {
    const part = block.subarray(at, at + FRAME_BYTES);
    const flags = at + FRAME_BYTES < block.length ? 0 : END_HEADERS;
    frames.push(at === 0 ? frame('headers', END_STREAM | flags, 1, part) : frame('continuation', flags, 1, part));
  }
  return Buffer.concat(frames);
}

/** Sends until the server ends the connection or the time is up; gives whether it ended. */
async function flood(socket: Socket, { first, again }: Flood): Promise<boolean> {
  let closed = false;
  socket.once('close', () => {
    closed = true;
  });
  socket.write(opening());
  if (first) socket.write(first);
  const end = performance.now() + ENDED_MS;
  for (let round = 0; !closed && performance.now() < end; round++) {
    if (socket.write(again(round))) await sleep(0);
    else await Promise.race([once(socket, 'drain').catch(() => {}), sleep(100)]);
  }
  return closed;
}

describe.each(PORTS)('%s', (port) => {
  test.each(Object.entries(FLOODS))('a flood of %s, by clients that read and clients that do not', async (_, each) => {
    const sockets = Array.from({ length: CONNECTIONS }, core.raw[port].open);
    for (const socket of sockets.slice(0, CONNECTIONS / 2)) socket.resume();
    let going = true;
    const floods = Promise.all(sockets.map((socket) => flood(socket, each))).finally(() => {
      going = false;
    });
    while (going) {
      await core.goesOn();
      await sleep(PAUSE_MS);
    }
    const ended = await floods;
    expect(ended).toEqual(ended.map(() => true));
  });

  test.each(Object.entries(INVALID))('%s', async (_, bytes) => {
    const received = framesIn(await core.raw[port].exchange(opening(), bytes));
    expect(received.map(({ type }) => type)).toContain(TYPES.settings);
    expect(received.map(({ type }) => type)).not.toContain(TYPES.data);
  });

  test('calls whose answers are never read use bounded memory and do not block others', async () => {
    const before = await core.figures();
    for (let n = 0; n < 20; n++) {
      const socket = core.raw[port].open();
      // Half of the clients have a window of zero, the others do not read.
      const window = n % 2 === 0 ? [setting(INITIAL_WINDOW_SIZE, 0)] : [];
      if (n % 2 === 0) socket.resume();
      socket.write(Buffer.concat([opening(...window), ...streams(0, 1_000).map(healthCheck)]));
    }
    const end = performance.now() + 3_000;
    while (performance.now() < end) {
      await core.goesOn();
      await sleep(PAUSE_MS);
    }
    expect((await core.figures()).memory - before.memory).toBeLessThan(500 * 1024 * 1024);
  });
});
