/** HTTP/2 frames as bytes, valid or not: client libraries only send valid ones. Source: RFC 9113 §4.1, §6. */
export const TYPES = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const END_STREAM = 0x1;
export const END_HEADERS = 0x4;
export const ACK = 0x1;

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export function frame(type: keyof typeof TYPES, flags: number, stream: number, payload: Uint8Array = EMPTY): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(TYPES[type], 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

const EMPTY = Buffer.alloc(0);

export function number32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** One setting, by its identifier. Source: RFC 9113 §6.5.2. */
export function setting(id: number, value: number): Buffer {
  return Buffer.concat([Buffer.of(0, id), number32(value)]);
}

/** A header block of literals that are neither indexed nor compressed. Source: RFC 7541 §6.2.2. */
export function headerBlock(headers: Readonly<Record<string, string>>): Buffer {
  const literals = Object.entries(headers).flatMap(([name, value]) => [Buffer.of(0), text(name), text(value)]);
  return Buffer.concat(literals);
}

function text(value: string): Buffer {
  return Buffer.concat([length(value.length), Buffer.from(value, 'latin1')]);
}

/** An integer with a prefix of 7 bits. Source: RFC 7541 §5.1. */
function length(value: number): Buffer {
  if (value < 0x7f) return Buffer.of(value);
  const bytes = [0x7f];
  let rest = value - 0x7f;
  for (; rest >= 0x80; rest >>>= 7) bytes.push(0x80 | (rest & 0x7f));
  return Buffer.of(...bytes, rest);
}

/** The start of every connection: the preface and the client's settings. */
export function opening(...settings: readonly Buffer[]): Buffer {
  return Buffer.concat([PREFACE, frame('settings', 0, 0, Buffer.concat(settings))]);
}

/** The headers of a gRPC call. */
export function callHeaders(method: string, more: Readonly<Record<string, string>> = {}): Buffer {
  const required = { ':method': 'POST', ':scheme': 'http', ':authority': 'a.example', ':path': `/${method}` };
  return headerBlock({ ...required, 'content-type': 'application/grpc', te: 'trailers', ...more });
}

/** A gRPC call of `Health/Check` with an empty message. */
export function healthCheck(stream: number): Buffer {
  const headers = callHeaders('grpc.health.v1.Health/Check');
  const message = Buffer.alloc(5);
  return Buffer.concat([frame('headers', END_HEADERS, stream, headers), frame('data', END_STREAM, stream, message)]);
}

/** The frames received on a connection, without an incomplete last one. */
export function framesIn(bytes: Buffer): Frame[] {
  const frames: Frame[] = [];
  let at = 0;
  while (at + 9 <= bytes.length) {
    const end = at + 9 + bytes.readUIntBE(at, 3);
    if (end > bytes.length) break;
    const stream = bytes.readUInt32BE(at + 5) & 0x7fffffff;
    frames.push({ type: bytes[at + 3] ?? 0, flags: bytes[at + 4] ?? 0, stream, payload: bytes.subarray(at + 9, end) });
    at = end;
  }
  return frames;
}

/** `SERVING` as a gRPC message. */
const SERVING = Buffer.of(0, 0, 0, 0, 2, 0x08, 1);

/** The streams on which health answered `SERVING`. */
export function servingIn(bytes: Buffer): number[] {
  return framesIn(bytes)
    .filter(({ type, payload }) => type === TYPES.data && payload.equals(SERVING))
    .map(({ stream }) => stream);
}
