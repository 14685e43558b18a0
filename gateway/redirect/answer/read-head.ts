import { isHost } from '../../http/request-target.ts';
import type { ScanHeaders } from './scan-request.ts';

/** The request line and headers of a scan. */
export interface Head {
  readonly method: 'GET' | 'HEAD';
  readonly shortCode: string;
  /** The query, without its `?`; empty if the target has none. */
  readonly query: string;
  readonly headers: ScanHeaders;
  /** Whether the client asks for the connection to be closed after the response. */
  readonly last: boolean;
  /** The offset at which the head ends and the next request begins. */
  readonly end: number;
}

/** The limit of Node's own parser. */
const MAX_BYTES = 16_384;
const MAX_CODE_LENGTH = 32;

const [TAB, LF, CR, SPACE, COLON, SLASH, QUESTION] = [9, 10, 13, 32, 58, 47, 63];
const VERSION = Buffer.from('HTTP/1.1\r\n');

/** Bit flags for what each byte may be part of. */
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

/** The headers that a scan reads. */
const SCAN_HEADERS = [
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
/** Accepted only with the value `keep-alive`, which is the default, or `close`. */
const CONNECTION = 'connection';
/** Headers about the connection or a body: a request with one of them is left to Node. */
const UNSUPPORTED_HEADERS = [
  ...['content-length', 'transfer-encoding', 'trailer', 'te', 'expect'],
  ...['upgrade', 'http2-settings', 'proxy-connection'],
];

/** A header that the parser recognizes, and the slot for its value. */
interface RecognizedHeader {
  readonly name: Uint8Array;
  readonly slot: number;
}

/**
 * Returns a parser for the head of a scan at the start of a buffer, several times faster than a parser that has to
 * accept all of HTTP. It accepts requests in the one form that browsers and proxies send, and returns undefined for all
 * others, which are left to Node's parser: a method other than GET and HEAD, a path other than `/r/{short code}`, a
 * body, a byte that is not ASCII, a folded line, a repeated header, an invalid host, an incomplete head. Accepted heads
 * are parsed exactly as Node parses them; a test compares the two.
 *
 * `extraHeader`: the name of a further header to read.
 */
export function headReader(extraHeader?: string): (bytes: Buffer) => Head | undefined {
  const slots: readonly string[] = [
    ...new Set([...SCAN_HEADERS, ...(extraHeader === undefined ? [] : [extraHeader.toLowerCase()])]),
  ];
  const connectionSlot = slots.length;
  const unsupportedSlot = connectionSlot + 1;
  /** Indexed by the length of the name, which rules out most other headers. */
  const recognized: (RecognizedHeader[] | undefined)[] = [];
  const register = (name: string, slot: number) => {
    recognized[name.length] ??= [];
    recognized[name.length]?.push({ name: Buffer.from(name), slot });
  };
  for (const [slot, name] of slots.entries()) register(name, slot);
  register(CONNECTION, connectionSlot);
  for (const name of UNSUPPORTED_HEADERS) register(name, unsupportedSlot);
  const starts = new Int32Array(unsupportedSlot);
  const ends = new Int32Array(unsupportedSlot);
  /** The last valid host: it is nearly always the same one. */
  let lastHost: string | undefined;

  function value(bytes: Buffer, slot: number): string | undefined {
    const start = starts[slot] ?? 0;
    return start === 0 ? undefined : bytes.toString('latin1', start, ends[slot]);
  }

  return (bytes) => {
    const line = readRequestLine(bytes);
    if (!line) return undefined;
    starts.fill(0);
    const limit = Math.min(bytes.length, MAX_BYTES);
    let at = line.end;
    while (at < limit && bytes[at] !== CR) {
      const start = at;
      while ((CLASS[bytes[at] ?? 0] ?? 0) & TOKEN) at++;
      if (at === start || bytes[at] !== COLON) return undefined;
      const slot = slotOf(recognized[at - start], bytes, at);
      at++;
      while (bytes[at] === SPACE || bytes[at] === TAB) at++;
      const valueStart = at;
      while ((CLASS[bytes[at] ?? 0] ?? 0) & TEXT) at++;
      if (bytes[at] !== CR || bytes[at + 1] !== LF) return undefined;
      if (slot >= 0) {
        // Unsupported or repeated.
        if (starts[slot] !== 0) return undefined;
        let end = at;
        while (end > valueStart && (bytes[end - 1] === SPACE || bytes[end - 1] === TAB)) end--;
        starts[slot] = valueStart;
        ends[slot] = end;
      }
      at += 2;
    }
    if (at + 1 >= limit || bytes[at] !== CR || bytes[at + 1] !== LF) return undefined;
    const host = value(bytes, 0);
    const connection = value(bytes, connectionSlot);
    if (!host || (connection !== undefined && !/^(?:keep-alive|close)$/i.test(connection))) return undefined;
    const last = connection !== undefined && connection.length === 'close'.length;
    // Node rejects bytes after such a request.
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
    const extra = slots[SCAN_HEADERS.length];
    if (extra !== undefined) headers[extra] = value(bytes, SCAN_HEADERS.length);
    const { method, shortCode, query } = line;
    return { method, shortCode, query, headers, last, end: at + 2 };
  };
}

/** The slot of the header whose name ends at `end`; -1 for a header that is not recognized. */
function slotOf(candidates: readonly RecognizedHeader[] | undefined, bytes: Buffer, end: number): number {
  if (candidates === undefined) return -1;
  for (const { name, slot } of candidates) {
    // Compared from the end, where names of the same length differ.
    let remaining = name.length;
    const start = end - remaining;
    while (remaining > 0 && toLowerCase(bytes[start + remaining - 1] ?? 0) === name[remaining - 1]) remaining--;
    if (remaining === 0) return slot;
  }
  return -1;
}

function toLowerCase(byte: number): number {
  return byte >= 0x41 && byte <= 0x5a ? byte | 0x20 : byte;
}

/** Reads `GET /r/Ab3dE9k?utm_source=poster HTTP/1.1`; `end` is where the headers begin. */
function readRequestLine(bytes: Buffer): Omit<Head, 'headers' | 'last'> | undefined {
  // 'GET ', or 'HEAD' before a space, compared as big-endian numbers.
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
  if (codeEnd === codeStart || codeEnd - codeStart > MAX_CODE_LENGTH) return undefined;
  if (bytes[at] === SLASH) at++;
  const queryStart = at + 1;
  if (bytes[at] === QUESTION) while ((CLASS[bytes[at] ?? 0] ?? 0) & VISIBLE) at++;
  if (bytes[at] !== SPACE) return undefined;
  const end = at + 1 + VERSION.length;
  if (bytes.compare(VERSION, 0, VERSION.length, at + 1, Math.min(end, bytes.length)) !== 0) return undefined;
  return {
    method,
    shortCode: bytes.toString('latin1', codeStart, codeEnd),
    query: at > queryStart ? bytes.toString('latin1', queryStart, at) : '',
    end,
  };
}
