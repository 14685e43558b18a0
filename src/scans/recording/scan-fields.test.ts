import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Scan, ScanSchema } from '../../../proto/gen/signpost/scans/v1/scan_pb.ts';
import { readFields } from './scan-fields.ts';

/** What protobuf says of the bytes. */
function expected(bytes: Uint8Array) {
  let scan: Scan;
  try {
    scan = fromBinary(ScanSchema, bytes);
  } catch {
    return undefined;
  }
  const { codeId, accountId, userAgent, purpose, country, referrerHost, referrer, address, countryHint } = scan;
  const scannedAt = scan.scannedAt ? timestampMs(scan.scannedAt) : Number.NaN;
  const [id, visitor] = [[...scan.id], [...scan.visitor]];
  return {
    ...{ id, codeId, accountId, scannedAt, userAgent, purpose, visitor, country, referrerHost },
    ...{ referrer, address, countryHint },
  };
}

function expectAgreement(bytes: Uint8Array): void {
  const read = readFields(bytes);
  const told = expected(bytes);
  expect(read && { ...read, id: [...read.id], visitor: [...read.visitor] }).toEqual(
    told && expect.objectContaining(told),
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

test('any scan is read as protobuf reads it', () => {
  fc.assert(fc.property(scan, expectAgreement), { numRuns: 2_000 });
});

test('so is what is left of a scan that was cut off', () => {
  const cut = fc
    .tuple(scan, fc.nat(400))
    .map(([bytes, length]) => bytes.subarray(0, Math.max(bytes.length - length, 0)));
  fc.assert(fc.property(cut, expectAgreement), { numRuns: 2_000 });
});

test('what is damaged is read as protobuf reads it where it does, and never throws', () => {
  const damaged = fc
    .tuple(scan, fc.nat(), fc.nat(255))
    .map(([bytes, place, byte]) => (bytes.length === 0 ? bytes : bytes.with(place % bytes.length, byte)));
  fc.assert(
    fc.property(fc.oneof(damaged, fc.uint8Array({ maxLength: 60 })), (bytes) => {
      // A text that nobody reads may be no text.
      if (expected(bytes)) expectAgreement(bytes);
      else readFields(bytes);
    }),
    { numRuns: 5_000 },
  );
});
