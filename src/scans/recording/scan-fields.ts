import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { ScanSchema } from '../../../proto/gen/signpost/scans/v1/scan_pb.ts';

/** The fields of a `signpost.scans.v1.Scan` that the recorder uses. */
export interface ScanFields {
  id: Uint8Array;
  codeId: string;
  accountId: string;
  /** ms since 1970; NaN when absent. */
  scannedAt: number;
  userAgent: string;
  purpose: string;
  /** 8 bytes; empty when absent. */
  visitor: Uint8Array;
  country: string;
  referrerHost: string;
  /** 0 if the target had never been changed, as is the rule. */
  targetVersion: number;
  targetRule: number;
  targetVariant: string;
}

/**
 * Decodes a scan; undefined for bytes that are not a scan. Nearly all scans have the layout that gateways write and are
 * read here field by field, in a third of the time: decoding was the largest part of a recorder's own work. Anything
 * else is left to protobuf.
 */
export function decodeFields(value: Uint8Array): ScanFields | undefined {
  return readCommonLayout(Buffer.from(value.buffer, value.byteOffset, value.length)) ?? readWithProtobuf(value);
}

/** Undefined for any other layout. */
function readCommonLayout(bytes: Buffer): ScanFields | undefined {
  const fields = emptyFields();
  let at = 0;
  while (at < bytes.length) {
    // The field number and wire type, which is length-delimited for all fields but those of the target; then the
    // length, one or two bytes.
    const tag = bytes[at++] as number;
    if (tag >= 0x80) {
      at = readTarget(bytes, at, fields);
      if (at < 0) return undefined;
      continue;
    }
    let length = bytes[at++] ?? 0;
    if (length >= 0x80) length += ((bytes[at++] ?? 0) - 1) * 0x80;
    const end = at + length;
    if ((tag & 7) !== 2 || length >= 0x4000 || end > bytes.length) return undefined;
    switch (tag >> 3) {
      case 1:
        fields.id = bytes.subarray(at, end);
        break;
      case 2:
        fields.codeId = bytes.toString('utf8', at, end);
        break;
      case 3:
        fields.accountId = bytes.toString('utf8', at, end);
        break;
      case 4:
        // protobuf merges a message field that occurs twice.
        if (!Number.isNaN(fields.scannedAt)) return undefined;
        fields.scannedAt = readTimestamp(bytes, at, end);
        break;
      case 6:
        fields.userAgent = bytes.toString('utf8', at, end);
        break;
      case 10:
        fields.purpose = bytes.toString('utf8', at, end);
        break;
      case 13:
        fields.visitor = bytes.subarray(at, end);
        break;
      case 14:
        fields.country = bytes.toString('utf8', at, end);
        break;
      case 15:
        fields.referrerHost = bytes.toString('utf8', at, end);
        break;
      default:
    }
    at = end;
  }
  // A replacement character may stand for invalid UTF-8: only protobuf can tell whether the record contained one
  // itself.
  const { userAgent, purpose, country, referrerHost, targetVariant } = fields;
  const invalid =
    hasReplacement(userAgent) ||
    hasReplacement(purpose) ||
    hasReplacement(country) ||
    hasReplacement(referrerHost) ||
    hasReplacement(targetVariant);
  return invalid || Number.isNaN(fields.scannedAt) ? undefined : fields;
}

/**
 * Reads a field of the target, whose tag has two bytes and continues at `at`. Returns where the next field begins; -1
 * if it is any other field.
 */
function readTarget(bytes: Buffer, at: number, fields: ScanFields): number {
  // Field 16 is the first whose tag has two bytes, of which the second is 1 up to field 31.
  if (bytes[at] !== 1) return -1;
  let [value, factor, end, byte] = [0, 1, at + 1, 0x80];
  // At most four bytes, 28 bits: more versions than a code will ever have.
  for (; byte >= 0x80 && end < at + 5; factor *= 0x80) {
    byte = bytes[end++] ?? 0x80;
    value += (byte & 0x7f) * factor;
  }
  if (byte >= 0x80) return -1;
  switch (bytes[at - 1]) {
    case 0x80:
      fields.targetVersion = value;
      return end;
    case 0x88:
      fields.targetRule = value;
      return end;
    case 0x92:
      if (end + value > bytes.length) return -1;
      fields.targetVariant = bytes.toString('utf8', end, end + value);
      return end + value;
    default:
      return -1;
  }
}

function hasReplacement(text: string): boolean {
  return text.includes('\ufffd');
}

/** Reads a `google.protobuf.Timestamp` since 1970, with optional nanoseconds, as ms; NaN for any other. */
function readTimestamp(bytes: Buffer, start: number, end: number): number {
  let [at, seconds, nanos] = [start, 0, 0];
  while (at < end) {
    const tag = bytes[at++];
    let [number, factor, byte] = [0, 1, 0x80];
    for (; byte >= 0x80 && at < end; factor *= 0x80) {
      byte = bytes[at++] as number;
      number += (byte & 0x7f) * factor;
    }
    if (byte >= 0x80 || number > 0xff_ffff_ffff) return Number.NaN;
    if (tag === 0x08) seconds = number;
    else if (tag === 0x10 && number < 1e9) nanos = number;
    else return Number.NaN;
  }
  return seconds * 1_000 + Math.round(nanos / 1_000_000);
}

/**
 * Removes from a record's value what could identify the visitor, which no gateway writes: dead letters are kept for
 * months. Null when the bytes are not a scan, because an address may be anywhere in them.
 */
export function withoutVisitorData(value: Uint8Array): Uint8Array | null {
  try {
    const scan = fromBinary(ScanSchema, value, { readUnknownFields: false });
    return toBinary(ScanSchema, { ...scan, address: '', referrer: '', language: '' });
  } catch {
    return null;
  }
}

function readWithProtobuf(value: Uint8Array): ScanFields | undefined {
  try {
    const { scannedAt, ...fields } = fromBinary(ScanSchema, value);
    return { ...fields, scannedAt: scannedAt ? timestampMs(scannedAt) : Number.NaN };
  } catch {
    // protobuf's error is dropped: it may quote the bytes, and they can contain an address.
    return undefined;
  }
}

const NO_BYTES = new Uint8Array();

function emptyFields(): ScanFields {
  return {
    id: NO_BYTES,
    codeId: '',
    accountId: '',
    scannedAt: Number.NaN,
    userAgent: '',
    purpose: '',
    visitor: NO_BYTES,
    country: '',
    referrerHost: '',
    targetVersion: 0,
    targetRule: 0,
    targetVariant: '',
  };
}
