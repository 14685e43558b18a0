import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Scan, ScanSchema } from '../../../proto/gen/signpost/scans/v1/scan_pb.ts';
import { decodeFields } from './scan-fields.ts';

/** The result of protobuf's own decoder. */
function expected(bytes: Uint8Array) {
  let scan: Scan;
  try {
    scan = fromBinary(ScanSchema, bytes);
  } catch {
    return undefined;
  }
  const { codeId, accountId, userAgent, purpose, country, referrerHost } = scan;
  const scannedAt = scan.scannedAt ? timestampMs(scan.scannedAt) : Number.NaN;
  const [id, visitor] = [[...scan.id], [...scan.visitor]];
  return { id, codeId, accountId, scannedAt, userAgent, purpose, visitor, country, referrerHost };
}

function expectSameResult(bytes: Uint8Array): void {
  const read = decodeFields(bytes);
  const decoded = expected(bytes);
  expect(read && { ...read, id: [...read.id], visitor: [...read.visitor] }).toEqual(
    decoded && expect.objectContaining(decoded),
  );
}

const text = fc.oneof(fc.string({ maxLength: 300 }), fc.string({ unit: 'binary', maxLength: 3_000 }));
const scan = fc
  .record({
    id: fc.uint8Array({ maxLength: 20 }),
    codeId: text,
    accountId: text,
    scannedAt: fc.option(
      fc.record({
        seconds: fc.bigInt({ min: -62_135_596_800n, max: 253_402_300_799n }),
        nanos: fc.integer({ min: 0, max: 999_999_999 }),
      }),
      { nil: undefined },
    ),
    host: text,
    userAgent: text,
    referrer: text,
    address: text,
    language: text,
    purpose: text,
    countryHint: text,
    visitor: fc.uint8Array({ maxLength: 10 }),
    country: text,
    referrerHost: text,
  })
  .map(({ scannedAt, ...fields }) =>
    toBinary(ScanSchema, create(ScanSchema, { ...fields, ...(scannedAt && { scannedAt }) })),
  );

test('any scan is decoded as protobuf decodes it', () => {
  fc.assert(fc.property(scan, expectSameResult), { numRuns: 2_000 });
});

test('a truncated scan is decoded as protobuf decodes it', () => {
  const cut = fc
    .tuple(scan, fc.nat(400))
    .map(([bytes, length]) => bytes.subarray(0, Math.max(bytes.length - length, 0)));
  fc.assert(fc.property(cut, expectSameResult), { numRuns: 2_000 });
});

test('damaged bytes are decoded as protobuf decodes them, or rejected as it rejects them, and never throw', () => {
  const damaged = fc
    .tuple(scan, fc.nat(), fc.nat(255))
    .map(([bytes, position, byte]) => (bytes.length === 0 ? bytes : bytes.with(position % bytes.length, byte)));
  fc.assert(
    fc.property(fc.oneof(damaged, fc.uint8Array({ maxLength: 60 })), (bytes) => {
      // Fields that are not recorded may be invalid UTF-8, which only protobuf rejects.
      if (expected(bytes)) expectSameResult(bytes);
      else decodeFields(bytes);
    }),
    { numRuns: 5_000 },
  );
});
