import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeId, newUuid } from '../../../common/contract/ids.ts';
import { referrerHost } from '../../../common/contract/referrer.ts';
import { visitorOf } from '../../../common/contract/visitor.ts';
import { Answer } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { ScanSchema } from '../../../proto/gen/signpost/scans/v1/scan_pb.ts';
import { answeredAt, codeIdIn, ID_AT } from '../spool/scan-layout.ts';
import { stampOf, stampScans } from '../spool/scan-stamp.ts';
import { scanIdText, writeScanId } from './scan-id.ts';
import { scanWriter } from './scan-message.ts';
import { Visit, type VisitSources } from './visit.ts';

const route = {
  version: 1,
  answer: Answer.REDIRECT,
  targetUrl: 'https://example.com/',
  hostname: '',
  codeId: encodeId('qr', newUuid()),
  accountId: encodeId('acct', newUuid()),
  landingPage: undefined,
  targetVersion: 0,
  policy: undefined,
};

const SALT = '5a'.repeat(32);
const scanMessage = scanWriter(stampScans(() => 0));
const sources: VisitSources = {
  countryHeader: 'country',
  countryOf: (address) => (address === '2001:db8::1' ? 'FR' : 'unknown'),
  saltAt: () => SALT,
};

/** Latin-1, as Node reads headers, of any length that it lets through. */
const header = fc.option(
  fc
    .tuple(
      fc.string({ unit: fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code)) }),
      fc.nat(300),
    )
    .map(([text, times]) => text.repeat(times).slice(0, 3_000)),
  { nil: undefined },
);

/** Truncates as the comments of the `Scan` message demand. */
function truncated(value: string | undefined, bytes: number): string {
  let text = value ?? '';
  while (Buffer.byteLength(text) > bytes) text = text.slice(0, -1);
  return text;
}

test('a scan decodes as valid protobuf whatever the visitor sent, and does not contain their address', () => {
  fc.assert(
    fc.property(
      fc.record({
        'user-agent': header,
        referer: fc.oneof(header, fc.webUrl({ withQueryParameters: true })),
        'accept-language': header,
        'sec-purpose': header,
        country: fc.constantFrom(undefined, 'de', 'DE', 'xyz', 'é!', 'XX'),
      }),
      fc.constantFrom('2001:db8::1', '203.0.113.7'),
      fc.string({ maxLength: 300, unit: 'grapheme' }),
      fc.boolean(),
      fc.option(
        fc.record({
          version: fc.integer({ min: 1, max: 2 ** 32 - 1 }),
          rule: fc.nat(20),
          variant: fc.string({ maxLength: 32, unit: 'grapheme' }),
          target: fc.constant('https://example.com/'),
        }),
        { nil: undefined },
      ),
      (headers, address, hostname, proxied, decided) => {
        const before = Date.now();
        const visit = new Visit(sources, headers, { hostname, address, proxied });
        const written = Buffer.from(scanMessage({ ...route, targetVersion: decided?.version ?? 0 }, visit, decided));
        const scan = fromBinary(ScanSchema, written);
        expect(written).toHaveLength(toBinary(ScanSchema, scan).length);
        const hinted = /^de$/i.test(headers.country ?? '') && proxied ? 'DE' : undefined;
        const userAgent = truncated(headers['user-agent'], 1_024);
        expect(scan).toMatchObject({
          codeId: route.codeId,
          accountId: route.accountId,
          host: Buffer.from(hostname.slice(0, 255)).toString(),
          userAgent,
          purpose: truncated(headers['sec-purpose'], 64),
          country: hinted ?? (address === '2001:db8::1' ? 'FR' : ''),
          referrerHost: referrerHost(truncated(headers.referer, 2_048)),
          ...{ address: '', referrer: '', language: '', countryHint: '' },
          targetVersion: decided?.version ?? 0,
          targetRule: decided?.rule ?? 0,
          targetVariant: Buffer.from(decided?.variant ?? '').toString(),
        });
        expect(Buffer.from(scan.visitor).toString('hex')).toBe(visitorOf(SALT, address, userAgent));
        const at = scan.scannedAt ? timestampMs(scan.scannedAt) : 0;
        expect(at).toBeGreaterThanOrEqual(before);
        expect(at).toBeLessThanOrEqual(Date.now());
        expect(codeIdIn(written)).toBe(route.codeId);
        expect(answeredAt(written)).toBe(at);
        expect(stampOf(written)?.run).toBe(Buffer.from(scan.stamp).toString('hex', 0, 8));
        expect(scanIdText(written, ID_AT).replaceAll('-', '')).toBe(Buffer.from(scan.id).toString('hex'));
      },
    ),
    { numRuns: 1_000 },
  );
});

test('codeIdIn returns undefined for a message with another layout', () => {
  expect(codeIdIn(new Uint8Array())).toBeUndefined();
  expect(codeIdIn(Buffer.from('a scan that is none, but long enough to be one'))).toBeUndefined();
});

test('ids are unique UUIDv7s with the time of the scan', () => {
  const now = Date.UTC(2026, 10, 21, 9, 30);
  const bytes = Buffer.alloc(20);
  const ids = Array.from({ length: 2_000 }, () => {
    writeScanId(bytes, 2, now);
    return scanIdText(bytes, 2);
  });
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) {
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(Number.parseInt(id.slice(0, 13).replace('-', ''), 16)).toBe(now);
  }
});
