import type { DescField } from '@bufbuild/protobuf';
import { WireType } from '@bufbuild/protobuf/wire';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { ScanSchema } from '../../../proto/gen/signpost/scans/v1/scan_pb.ts';

/** The tag of a field, as protobuf encodes it. */
function tagOf({ number }: DescField, wireType: WireType): number {
  return (number << 3) | wireType;
}

/** The first of the two bytes of a tag; the second is 1 for fields 16 to 31. */
function firstByteOf(field: DescField, wireType: WireType): number {
  return (tagOf(field, wireType) & 0x7f) | 0x80;
}

const { field: scan } = ScanSchema;
const { Varint, LengthDelimited } = WireType;

/** Tags of the fields of a serialized `signpost.scans.v1.Scan`, in the order in which they are written. */
export const ID = tagOf(scan.id, LengthDelimited);
export const CODE_ID = tagOf(scan.codeId, LengthDelimited);
export const ACCOUNT_ID = tagOf(scan.accountId, LengthDelimited);
export const SCANNED_AT = tagOf(scan.scannedAt, LengthDelimited);
export const HOST = tagOf(scan.host, LengthDelimited);
export const USER_AGENT = tagOf(scan.userAgent, LengthDelimited);
export const PURPOSE = tagOf(scan.purpose, LengthDelimited);
export const VISITOR = tagOf(scan.visitor, LengthDelimited);
export const COUNTRY = tagOf(scan.country, LengthDelimited);
export const REFERRER_HOST = tagOf(scan.referrerHost, LengthDelimited);
export const TARGET_VERSION = firstByteOf(scan.targetVersion, Varint);
export const TARGET_RULE = firstByteOf(scan.targetRule, Varint);
export const TARGET_VARIANT = firstByteOf(scan.targetVariant, LengthDelimited);
export const STAMP = tagOf(scan.stamp, LengthDelimited);

/** Tags of the fields of `google.protobuf.Timestamp`. */
export const SECONDS = tagOf(TimestampSchema.field.seconds, Varint);
export const NANOS = tagOf(TimestampSchema.field.nanos, Varint);

/** The offset of the id, which has 16 bytes. */
export const ID_AT = 2;

/**
 * The code id of a serialized scan, which determines its partition. Undefined if the bytes don't have the layout that
 * `scanWriter` produces: another version may have written them.
 */
export function codeIdIn(message: Uint8Array): string | undefined {
  const start = ID_AT + 18;
  const length = message[start - 1] ?? 0;
  if (message[0] !== ID || message[1] !== 16 || message[start - 2] !== CODE_ID || length > 127) return undefined;
  return Buffer.from(message.buffer, message.byteOffset + start, length).toString('latin1');
}

/** When a scan of that layout was answered, in ms since 1970, taken from its id; the current time for any other. */
export function answeredAt(message: Uint8Array): number {
  if (message[0] !== ID || message[1] !== 16 || message.length < ID_AT + 16) return Date.now();
  return Buffer.from(message.buffer, message.byteOffset + ID_AT, 6).readUIntBE(0, 6);
}
