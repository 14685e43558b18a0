import { referrerHost } from '../../../common/contract/referrer.ts';
import type { Decision } from '../../../common/targets/evaluate.ts';
import type { FoundRoute } from '../routes/route-record.ts';
import {
  ACCOUNT_ID,
  CODE_ID,
  COUNTRY,
  HOST,
  ID,
  ID_AT,
  NANOS,
  PURPOSE,
  REFERRER_HOST,
  SCANNED_AT,
  SECONDS,
  TARGET_RULE,
  TARGET_VARIANT,
  TARGET_VERSION,
  USER_AGENT,
  VISITOR,
} from '../spool/scan-layout.ts';
import { STAMP_BYTES, type Stamp } from '../spool/scan-stamp.ts';
import { writeScanId } from './scan-id.ts';
import { truncated, type Visit } from './visit.ts';

/**
 * Fits the longest message: 16 + 2 · 31 + 12 + 255 · 3 + 1,024 + 64 + 8 + 2 + 253 + 6 + 96 + 16 bytes, plus tags and
 * lengths.
 */
const bytes = Buffer.allocUnsafeSlow(4_096);

/**
 * Serializes the scan of a request as it is published to the log. The id assigned here identifies the scan from then on
 * (duplicates are dropped by it). Nothing that identifies the visitor goes further: of the address only the country and
 * a salted hash are written, of the referrer only the host.
 *
 * The protobuf encoding is written field by field by hand: the library took four times as long. The stamp has to be the
 * last field, where the ledger looks for it. The returned buffer is reused for the next message: callers must copy it.
 */
export function scanWriter(stamp: Stamp) {
  return (route: FoundRoute, visit: Visit, decided: Decision | undefined): Buffer => {
    const { now, headers, origin, userAgent, country } = visit;
    bytes[0] = ID;
    bytes[1] = 16;
    writeScanId(bytes, ID_AT, now);
    let at = writeString(ID_AT + 16, CODE_ID, route.codeId);
    at = writeString(at, ACCOUNT_ID, route.accountId);
    at = writeTimestamp(at, now);
    at = writeString(at, HOST, origin.hostname.length > 255 ? origin.hostname.slice(0, 255) : origin.hostname);
    at = writeString(at, USER_AGENT, userAgent);
    at = writeString(at, PURPOSE, truncated(headers['sec-purpose'], 64));
    at = writeVisitor(at, visit.visitor);
    if (country !== 'unknown') at = writeString(at, COUNTRY, country);
    at = writeString(at, REFERRER_HOST, referrerHost(truncated(headers.referer, 2_048)));
    if (route.targetVersion > 0) at = writeTarget(at, route.targetVersion, decided);
    stamp(bytes, at, now);
    return bytes.subarray(0, at + STAMP_BYTES);
  };
}

function writeTarget(start: number, version: number, decided: Decision | undefined): number {
  const afterVersion = writeNumber(start, TARGET_VERSION, version);
  if (!decided) return afterVersion;
  const { rule, variant } = decided;
  const at = writeNumber(afterVersion, TARGET_RULE, rule);
  if (variant === '') return at;
  // The second byte of the tag is written where the first of a short one would be.
  bytes[at] = TARGET_VARIANT;
  return writeString(at + 1, 1, variant);
}

/** Writes a number with a tag of two bytes, unless it is 0. Returns the offset of the next field. */
function writeNumber(at: number, tag: number, value: number): number {
  if (value === 0) return at;
  bytes[at] = tag;
  bytes[at + 1] = 1;
  return writeVarint(at + 2, value);
}

/** Writes the visitor field from 16 hexadecimal digits. Returns the offset of the next field. */
function writeVisitor(at: number, digits: string): number {
  bytes[at] = VISITOR;
  bytes[at + 1] = 8;
  bytes.write(digits, at + 2, 'hex');
  return at + 10;
}

/** Writes a string field, unless it is empty. Returns the offset of the next field. */
function writeString(at: number, tag: number, value: string): number {
  if (value === '') return at;
  bytes[at] = tag;
  // The length before it takes one byte, or two from 128 bytes on.
  const start = at + (value.length < 128 ? 2 : 3);
  const length = bytes.write(value, start, 'utf8');
  if (length < 128) {
    bytes[at + 1] = length;
    return start + length;
  }
  if (start === at + 2) bytes.copyWithin(at + 3, start, start + length);
  bytes[at + 1] = (length & 0x7f) | 0x80;
  bytes[at + 2] = length >>> 7;
  return at + 3 + length;
}

function writeTimestamp(at: number, now: number): number {
  const ms = now % 1_000;
  bytes[at] = SCANNED_AT;
  bytes[at + 2] = SECONDS;
  let end = writeVarint(at + 3, (now - ms) / 1_000);
  if (ms > 0) {
    bytes[end] = NANOS;
    end = writeVarint(end + 1, ms * 1_000_000);
  }
  bytes[at + 1] = end - at - 2;
  return end;
}

function writeVarint(at: number, value: number): number {
  let rest = value;
  while (rest >= 0x80) {
    bytes[at++] = (rest & 0x7f) | 0x80;
    rest = Math.floor(rest / 128);
  }
  bytes[at++] = rest;
  return at;
}
