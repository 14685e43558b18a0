import { toBinary } from '@bufbuild/protobuf';
import { decodeId, idIn } from '../../../common/contract/ids.ts';
import { type LandingPage, LandingPageSchema } from '../../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import type { Answer, CodeRoute } from '../../../proto/gen/signpost/routes/v1/route_pb.ts';

/** The route of a code, as far as scans need it. */
export interface FoundRoute {
  readonly answer: Answer;
  readonly targetUrl: string;
  readonly hostname: string;
  readonly codeId: string;
  readonly accountId: string;
  /** A serialized `LandingPage` message. */
  readonly landingPage: Buffer | undefined;
}

/**
 * The layout of a code in the route table, kept short (the table's pages are the worker's memory) and read without a parser:
 * version (8 bytes), answer (1), code id (16), account id (16), length of the hostname (1), length of the target (2),
 * hostname, target, landing page as protobuf.
 */
const VERSION_AT = 0;
const ANSWER_AT = 8;
const CODE_ID_AT = 9;
const ACCOUNT_ID_AT = 25;
const LENGTHS_AT = 41;
const TEXTS_AT = 44;

/** The characters allowed in a `Location` header. */
const LOCATION = /^[\x21-\x7e]*$/;

/** Serializes a route. Undefined for a route whose scans could not be answered or counted. */
export function codeRecord(version: bigint, route: CodeRoute): Buffer | undefined {
  const codeId = decodeId('qr', route.codeId);
  const accountId = decodeId('acct', route.accountId);
  const hostname = Buffer.from(route.hostname);
  const target = Buffer.from(route.targetUrl);
  if (codeId === undefined || accountId === undefined) return undefined;
  if (!LOCATION.test(route.targetUrl) || hostname.length > 255 || target.length > 0xffff) return undefined;
  const page = landingPageBytes(route.landingPage) ?? Buffer.alloc(0);
  const head = Buffer.alloc(TEXTS_AT);
  head.writeBigUInt64BE(version, VERSION_AT);
  head[ANSWER_AT] = route.answer;
  head.write(codeId.replaceAll('-', ''), CODE_ID_AT, 'hex');
  head.write(accountId.replaceAll('-', ''), ACCOUNT_ID_AT, 'hex');
  head[LENGTHS_AT] = hostname.length;
  head.writeUInt16BE(target.length, LENGTHS_AT + 1);
  return Buffer.concat([head, hostname, target, page]);
}

/** The version of a record, of a code or of a host. */
export function versionIn(record: Buffer): bigint {
  return record.readBigUInt64BE(VERSION_AT);
}

/** Deserializes the first `length` bytes of `record`; copies what it returns. Throws a RangeError if they are too short. */
export function readCode(record: Buffer, length: number): FoundRoute {
  const targetAt = TEXTS_AT + (record[LENGTHS_AT] ?? 0);
  const pageAt = targetAt + record.readUInt16BE(LENGTHS_AT + 1);
  if (pageAt > length) throw new RangeError('a record of the route table is too short');
  return {
    answer: (record[ANSWER_AT] ?? 0) as Answer,
    targetUrl: record.toString('latin1', targetAt, pageAt),
    hostname: targetAt === TEXTS_AT ? '' : record.toString('utf8', TEXTS_AT, targetAt),
    codeId: idIn('qr', record, CODE_ID_AT),
    accountId: idIn('acct', record, ACCOUNT_ID_AT),
    landingPage: pageAt === length ? undefined : Buffer.from(record.subarray(pageAt, length)),
  };
}

/** Converts a route from Postgres into the form that the table returns. */
export function foundRoute({ answer, targetUrl, hostname, codeId, accountId, landingPage }: CodeRoute): FoundRoute {
  return { answer, targetUrl, hostname, codeId, accountId, landingPage: landingPageBytes(landingPage) };
}

function landingPageBytes(page: LandingPage | undefined): Buffer | undefined {
  const bytes = page && toBinary(LandingPageSchema, page);
  return bytes?.length ? Buffer.from(bytes) : undefined;
}
