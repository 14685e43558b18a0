import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { ScanSchema } from '../../../proto/gen/signpost/scans/v1/scan_pb.ts';

/** The fields of a `signpost.scans.v1.Scan` that are recorded or derived from. */
export interface ScanFields {
  id: Uint8Array;
  codeId: string;
  accountId: string;
  /** ms since 1970; not a number when there is none. */
  scannedAt: number;
  userAgent: string;
  purpose: string;
  /** 8 bytes; none in records that have an address instead. */
  visitor: Uint8Array;
  country: string;
  referrerHost: string;
  // In records of former gateways.
  referrer: string;
  address: string;
  countryHint: string;
}

/**
 * Reads a scan; undefined when the bytes are none. Nearly all scans are of the shape that gateways write, and are read
 * here field by field, in a third of the time: decoding was the largest part of a recorder's own work. Any other is left
 * to protobuf.
 */
export function readFields(value: Uint8Array): ScanFields | undefined {
  return readUsual(Buffer.from(value.buffer, value.byteOffset, value.length)) ?? readAny(value);
}

/** Undefined for whatever is not of the usual shape. */
function readUsual(bytes: Buffer): ScanFields | undefined {
  const fields = noFields();
  let at = 0;
  while (at < bytes.length) {
    // A field's number and its wire type: of a length, for all fields of a scan. Then the length, in one byte or two.
    const tag = bytes[at++] as number;
    let length = bytes[at++] ?? 0;
    if (length >= 0x80) length += ((bytes[at++] ?? 0) - 1) * 0x80;
    const end = at + length;
    if (tag >= 0x80 || (tag & 7) !== 2 || length >= 0x4000 || end > bytes.length) return undefined;
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
        // Told twice, protobuf merges them.
        if (!Number.isNaN(fields.scannedAt)) return undefined;
        fields.scannedAt = timeIn(bytes, at, end);
        break;
      case 6:
        fields.userAgent = bytes.toString('utf8', at, end);
        break;
      case 7:
        fields.referrer = bytes.toString('utf8', at, end);
        break;
      case 8:
        fields.address = bytes.toString('utf8', at, end);
        break;
      case 10:
        fields.purpose = bytes.toString('utf8', at, end);
        break;
      case 11:
        fields.countryHint = bytes.toString('utf8', at, end);
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
  // A sign that stands for wrong bytes: protobuf knows whether it was told.
  const { userAgent, purpose, country, referrerHost, referrer, address, countryHint } = fields;
  const strange =
    isStrange(userAgent) ||
    isStrange(purpose) ||
    isStrange(country) ||
    isStrange(referrerHost) ||
    isStrange(referrer) ||
    isStrange(address) ||
    isStrange(countryHint);
  return strange || Number.isNaN(fields.scannedAt) ? undefined : fields;
}

function isStrange(text: string): boolean {
  return text.includes('\ufffd');
}

/** A `google.protobuf.Timestamp` of seconds since 1970, and maybe nanoseconds; not a number for any other. */
function timeIn(bytes: Buffer, start: number, end: number): number {
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
 * A record's value without what a former gateway told of its reader, for whoever reads dead letters: they are kept for
 * months. Null when the bytes are no scan, as an address may be anywhere in them.
 */
export function withoutReader(value: Uint8Array): Uint8Array | null {
  try {
    const scan = fromBinary(ScanSchema, value, { readUnknownFields: false });
    return toBinary(ScanSchema, { ...scan, address: '', referrer: '', language: '' });
  } catch {
    return null;
  }
}

function readAny(value: Uint8Array): ScanFields | undefined {
  try {
    const { scannedAt, ...fields } = fromBinary(ScanSchema, value);
    return { ...fields, scannedAt: scannedAt ? timestampMs(scannedAt) : Number.NaN };
  } catch {
    // Whatever protobuf says of the bytes, it may quote them, and they can hold an address.
    return undefined;
  }
}

const NO_BYTES = new Uint8Array();

function noFields(): ScanFields {
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
    referrer: '',
    address: '',
    countryHint: '',
  };
}
