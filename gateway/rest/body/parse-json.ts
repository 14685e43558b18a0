import { isUtf8 } from 'node:buffer';
import { Refusal } from '../refusal.ts';

/** The first bytes of what gzip compressed. Source: RFC 1952 §2.3.1. */
const GZIP = Buffer.of(0x1f, 0x8b);

/** Parses JSON in UTF-8. Throws a Refusal that says what is wrong and where. */
export function parseJson(body: Uint8Array): unknown {
  if (GZIP.equals(body.subarray(0, GZIP.length))) {
    throw new Refusal('MALFORMED_BODY', 'The body is compressed with gzip; send the JSON itself.');
  }
  if (!isUtf8(body)) {
    throw new Refusal(
      'MALFORMED_BODY',
      `The body is not valid UTF-8: the byte at offset ${firstInvalidByte(body)} is wrong.`,
    );
  }
  const text = new TextDecoder().decode(body);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Refusal('MALFORMED_BODY', `The body is not valid JSON: ${jsonFault(text, error as SyntaxError)}.`);
  }
}

/** Replacing invalid bytes leaves the valid ones before them as they are. */
function firstInvalidByte(body: Uint8Array): number {
  const replaced = new TextEncoder().encode(new TextDecoder('utf-8', { ignoreBOM: true }).decode(body));
  return replaced.findIndex((byte, index) => byte !== body[index]);
}

/** V8's reason with the position. V8 names neither for a token that can't begin a value, nor for the end. */
function jsonFault(text: string, { message }: SyntaxError): string {
  const [, stated, position] = /^(.+?)(?: in JSON)? at position (\d+) \(line \d+ column \d+\)$/s.exec(message) ?? [];
  const offset = position === undefined ? unstatedOffset(text, message) : Number(position);
  const reason = stated ?? unexpected(text.codePointAt(offset));
  const lines = text.slice(0, offset).split('\n');
  const place = `line ${lines.length}, column ${(lines.at(-1)?.length ?? 0) + 1}`;
  return `${reason.charAt(0).toLowerCase()}${reason.slice(1)} at ${place}`;
}

/** Characters that can't be seen between quotes: control characters, the byte order mark, spaces of all kinds. */
const INVISIBLE = /[\p{C}\p{Z}]/u;

function unexpected(codePoint: number | undefined): string {
  if (codePoint === undefined) return 'unexpected end';
  const token = String.fromCodePoint(codePoint);
  if (!INVISIBLE.test(token)) return `unexpected token '${token}'`;
  return `unexpected token U+${codePoint.toString(16).toUpperCase().padStart(4, '0')}`;
}

/** V8 quotes up to this many characters before an unexpected token, and as many from it on. */
const QUOTED = 10;

/** How many places with what V8 quotes are tried: each takes as long as parsing the body. */
const MOST_PLACES = 4;

/**
 * The offset that V8 does not state. A body may have megabytes, so it is found by what V8 quotes: a search by parsing
 * took 2.7 ms for 64 KiB.
 */
function unstatedOffset(text: string, message: string): number {
  if (message.startsWith('Unexpected end')) return text.length;
  const quoted = /^Unexpected token '.', \.\.\."(.*)"(?:\.\.\.)? is not valid JSON$/s.exec(message)?.[1];
  if (quoted === undefined) return unexpectedAt(text.slice(0, 2 * QUOTED));
  let place = text.indexOf(quoted);
  for (let places = 1; places < MOST_PLACES; places++) {
    const next = text.indexOf(quoted, place + 1);
    // If the token is not wrong here, these are the same characters in an earlier string.
    if (next === -1 || !isIncomplete(text.slice(0, place + QUOTED + 1))) break;
    place = next;
  }
  return place + QUOTED;
}

/** The offset of the first token that is wrong: the longest prefix that only lacks its end stops before it. */
function unexpectedAt(text: string): number {
  let length = 0;
  while (length < text.length && isIncomplete(text.slice(0, length + 1))) length++;
  return length;
}

function isIncomplete(prefix: string): boolean {
  try {
    JSON.parse(prefix);
    return true;
  } catch (error) {
    const { message } = error as SyntaxError;
    return message.startsWith('Unexpected end') || message.includes(` at position ${prefix.length} `);
  }
}
