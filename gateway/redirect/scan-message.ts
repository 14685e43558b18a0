import type { IncomingMessage } from 'node:http';
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { v7 } from 'uuid';
import type { CodeRoute } from '../../proto/gen/signpost/routes/v1/route_pb.ts';
import { ScanSchema } from '../../proto/gen/signpost/scans/v1/scan_pb.ts';
import type { Origin } from './origin.ts';

/** The scan that a request is, as it goes to the log. Its id is given here and decides for ever after. */
export function scanMessage(
  request: IncomingMessage,
  route: CodeRoute,
  origin: Origin,
  countryHeader: string | undefined,
): Uint8Array {
  const { headers } = request;
  const now = Date.now();
  const country = origin.proxied && countryHeader !== undefined ? headers[countryHeader.toLowerCase()] : undefined;
  return toBinary(
    ScanSchema,
    create(ScanSchema, {
      id: v7({ msecs: now }, new Uint8Array(16)),
      codeId: route.codeId,
      accountId: route.accountId,
      scannedAt: timestampFromMs(now),
      host: origin.hostname.slice(0, 255),
      userAgent: text(headers['user-agent'], 1_024),
      referrer: text(headers.referer, 2_048),
      address: origin.address,
      language: text(headers['accept-language'], 256),
      purpose: text(headers['sec-purpose'], 64),
      countryHint: /^[A-Za-z]{2}$/.test(text(country, 2)) ? text(country, 2).toUpperCase() : '',
    }),
  );
}

/** Header values are Latin-1 as Node reads them, so a character is at most two bytes of UTF-8. */
function text(value: string | string[] | undefined, mostBytes: number): string {
  const joined = Array.isArray(value) ? value.join(', ') : (value ?? '');
  return joined.length * 2 <= mostBytes
    ? joined
    : Buffer.from(joined)
        .subarray(0, mostBytes)
        .toString()
        .replace(/\ufffd$/, '');
}
