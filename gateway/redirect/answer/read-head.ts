import { isHost } from '../../request-target.ts';
import type { ScanHeaders } from './scan-request.ts';

/** The head of a request for a scan. */
export interface Head {
  readonly method: 'GET' | 'HEAD';
  readonly shortCode: string;
  readonly headers: ScanHeaders;
  /** Whether the client wants its connection closed with the answer. */
  readonly last: boolean;
  /** Where the head ends and the next request begins. */
  readonly end: number;
}

/** As much as Node's own parser takes. */
const MOST_BYTES = 16_384;
const MOST_CODE = 32;

const [TAB, LF, CR, SPACE, COLON, SLASH, QUESTION] = [9, 10, 13, 32, 58, 47, 63];
const VERSION = Buffer.from('HTTP/1.1\r\n');

/** What each byte may be part of. */
const [TOKEN, TEXT, VISIBLE, LETTER] = [1, 2, 4, 8];
const CLASS = new Uint8Array(256);
for (let byte = 0x20; byte < 0x7f; byte++) {
  const character = String.fromCharCode(byte);
  CLASS[byte] =
    (/[!#$%&'*+\-.^_`|~0-9A-Za-z]/.test(character) ? TOKEN : 0) |
    TEXT |
    (byte > 0x20 && character !== '#' ? VISIBLE : 0) |
    (/[0-9A-Za-z]/.test(character) ? LETTER : 0);
}
CLASS[TAB] = TEXT;

/** The headers that a scan looks at. */
const READ = [
  'host',
  'user-agent',
  'referer',
  'accept-language',
  'sec-purpose',
  'x-request-id',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
] as const;
/** May only say that the connection is kept, which is what happens anyway, or that it is closed with the answer. */
const CONNECTION = 'connection';
/** Say something of the connection or of a body: a request with one of them is not for us. */
const FOREIGN = [
  ...['content-length', 'transfer-encoding', 'trailer', 'te', 'expect'],
  ...['upgrade', 'http2-settings', 'proxy-connection'],
];

/** A header that matters, and where it is kept while a head is read. */
interface Known {
  readonly name: Uint8Array;
  readonly slot: number;
}

/**
 * Reads the head of a scan from the start of `bytes`, several times faster than a parser that has to take everything:
 * it takes requests in the one form that browsers and proxies send, and gives undefined for every other: a method but
 * GET and HEAD, a path but `/r/{short code}`, a body, a byte that is not ASCII, a folded line, a repeated header, an
 * invalid host, a head that is not whole. Those are for Node's parser. What it takes it reads as Node does; a test compares them.
 *
 * `more`: the name of a further header to read.
 */
export function headReader(more?: string): (bytes: Buffer) => Head | undefined {
  const slots: readonly string[] = [...new Set([...READ, ...(more === undefined ? [] : [more.toLowerCase()])])];
  const connectionSlot = slots.length;
  const foreignSlot = connectionSlot + 1;
  /** By the length of the name, which tells most headers from those that matter. */
  const known: (Known[] | undefined)[] = [];
  const know = (name: string, slot: number) => {
    known[name.length] ??= [];
    known[name.length]?.push({ name: Buffer.from(name), slot });
  };
  for (const [slot, name] of slots.entries()) know(name, slot);
  know(CONNECTION, connectionSlot);
  for (const name of FOREIGN) know(name, foreignSlot);
  const starts = new Int32Array(foreignSlot);
  const ends = new Int32Array(foreignSlot);
  /** The valid host that was read last: it is nearly always the same one. */
  let lastHost: string | undefined;

  function value(bytes: Buffer, slot: number): string | undefined {
    const start = starts[slot] ?? 0;
    return start === 0 ? undefined : bytes.toString('latin1', start, ends[slot]);
  }

  return (bytes) => {
    const target = readTarget(bytes);
    if (!target) return undefined;
    starts.fill(0);
    const most = Math.min(bytes.length, MOST_BYTES);
    let at = target.end;
    while (at < most && bytes[at] !== CR) {
      const start = at;
      while ((CLASS[bytes[at] ?? 0] ?? 0) & TOKEN) at++;
      if (at === start || bytes[at] !== COLON) return undefined;
      const slot = slotOf(known[at - start], bytes, at);
      at++;
      while (bytes[at] === SPACE || bytes[at] === TAB) at++;
      const valueStart = at;
      while ((CLASS[bytes[at] ?? 0] ?? 0) & TEXT) at++;
      if (bytes[at] !== CR || bytes[at + 1] !== LF) return undefined;
      if (slot >= 0) {
        // Foreign, or there for the second time.
        if (starts[slot] !== 0) return undefined;
        let end = at;
        while (end > valueStart && (bytes[end - 1] === SPACE || bytes[end - 1] === TAB)) end--;
        starts[slot] = valueStart;
        ends[slot] = end;
      }
      at += 2;
    }
    if (at + 1 >= most || bytes[at] !== CR || bytes[at + 1] !== LF) return undefined;
    const host = value(bytes, 0);
    const connection = value(bytes, connectionSlot);
    if (!host || (connection !== undefined && !/^(?:keep-alive|close)$/i.test(connection))) return undefined;
    const last = connection !== undefined && connection.length === 'close'.length;
    // Node rejects what follows such a request.
    if (last && at + 2 < bytes.length) return undefined;
    if (host !== lastHost) {
      if (!isHost(host)) return undefined;
      lastHost = host;
    }
    const headers: Record<string, string | undefined> = {
      host,
      'user-agent': value(bytes, 1),
      referer: value(bytes, 2),
      'accept-language': value(bytes, 3),
      'sec-purpose': value(bytes, 4),
      'x-request-id': value(bytes, 5),
      forwarded: value(bytes, 6),
      'x-forwarded-for': value(bytes, 7),
      'x-forwarded-host': value(bytes, 8),
    };
    const further = slots[READ.length];
    if (further !== undefined) headers[further] = value(bytes, READ.length);
    return { method: target.method, shortCode: target.shortCode, headers, last, end: at + 2 };
  };
}

/** Where the header whose name ends at `end` is kept; -1 for one that doesn't matter. */
function slotOf(known: readonly Known[] | undefined, bytes: Buffer, end: number): number {
  if (known === undefined) return -1;
  for (const { name, slot } of known) {
    // From the end: names of one length differ there.
    let left = name.length;
    const start = end - left;
    while (left > 0 && lowered(bytes[start + left - 1] ?? 0) === name[left - 1]) left--;
    if (left === 0) return slot;
  }
  return -1;
}

function lowered(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
}

/** Reads `GET /r/Ab3dE9k?utm_source=poster HTTP/1.1`; `end` is where the headers begin. */
function readTarget(bytes: Buffer): Omit<Head, 'headers' | 'last'> | undefined {
  // 'GET ' or 'HEAD' and a space, read as big-endian numbers.
  if (bytes.length < 32) return undefined;
  const first = bytes.readUInt32BE(0);
  const method = first === 0x47455420 ? 'GET' : first === 0x48454144 && bytes[4] === SPACE ? 'HEAD' : undefined;
  if (!method) return undefined;
  const start = method.length + 1;
  if (bytes[start] !== SLASH || bytes[start + 1] !== 0x72 || bytes[start + 2] !== SLASH) return undefined;
  const codeStart = start + 3;
  let at = codeStart;
  while ((CLASS[bytes[at] ?? 0] ?? 0) & LETTER) at++;
  const codeEnd = at;
  if (codeEnd === codeStart || codeEnd - codeStart > MOST_CODE) return undefined;
  if (bytes[at] === SLASH) at++;
  if (bytes[at] === QUESTION) while ((CLASS[bytes[at] ?? 0] ?? 0) & VISIBLE) at++;
  if (bytes[at] !== SPACE) return undefined;
  const end = at + 1 + VERSION.length;
  if (bytes.compare(VERSION, 0, VERSION.length, at + 1, Math.min(end, bytes.length)) !== 0) return undefined;
  return {
    method,
    shortCode: bytes.toString('latin1', codeStart, codeEnd),
    end,
  };
}
