import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { decodeId, idIn } from '../../../common/contract/ids.ts';
import { targetsOf } from '../../../common/targets/policy.ts';
import { LandingPageSchema } from '../../../proto/gen/signpost/pages/v1/landing_page_pb.ts';
import {
  Answer,
  type CodeRoute,
  type HostRoute,
  HostRouteSchema,
} from '../../../proto/gen/signpost/routes/v1/route_pb.ts';
import { type Policy, PolicySchema } from '../../../proto/gen/signpost/targets/v1/policy_pb.ts';

/** The starts of keys: before a short code, a hostname and the number of a partition. */
export const CODE_KEY = 'c';
export const HOST_KEY = 'h';
export const POSITION_KEY = 'p';
/** The range of all positions, as an object of its own each time: lmdb changes it. */
export const positionKeys = () => ({ start: POSITION_KEY, end: `${POSITION_KEY}~` });
/** The key of the topic's identity. */
export const TOPIC_KEY = 't';
/** The key that the table has until it has contained a whole topic for the first time. */
export const INCOMPLETE_KEY = 'i';

/** The route of a code, as far as scans need it. */
export interface FoundRoute {
  /** The version of the code's record, in 48 bits. Each change has a new one, also after a restore of Postgres. */
  readonly version: number;
  readonly answer: Answer;
  readonly targetUrl: string;
  readonly hostname: string;
  readonly codeId: string;
  readonly accountId: string;
  /** A serialized `LandingPage` message. */
  readonly landingPage: Buffer | undefined;
  /** The version of the target of an active dynamic code; 0 if it has never been changed. */
  readonly targetVersion: number;
  /** A serialized `Policy` message, of an active dynamic code. */
  readonly policy: Buffer | undefined;
}

/**
 * The layout of a code in the route table, kept short (the table's pages are the worker's memory) and read without a
 * parser: version (8 bytes), answer (1), code id (16), account id (16), length of the hostname (1), length of the
 * target (2), hostname, target, and then either the landing page as protobuf or, for an answer by redirect, the version
 * of the target (4 bytes, absent if it has never been changed) and the policy as protobuf. Gateways that know no
 * policies ignore what follows the target of a redirect.
 */
const VERSION_AT = 0;
const ANSWER_AT = 8;
const CODE_ID_AT = 9;
const ACCOUNT_ID_AT = 25;
const LENGTHS_AT = 41;
const TEXTS_AT = 44;
const TARGET_VERSION_BYTES = 4;

const NOTHING = Buffer.alloc(0);

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
  if (route.policy && !targetsOf(route.policy).every((url) => LOCATION.test(url))) return undefined;
  const rest = route.answer === Answer.REDIRECT ? targetBytes(route) : (landingPageBytes(route) ?? NOTHING);
  const head = Buffer.alloc(TEXTS_AT);
  head.writeBigUInt64BE(version, VERSION_AT);
  head[ANSWER_AT] = route.answer;
  head.write(codeId.replaceAll('-', ''), CODE_ID_AT, 'hex');
  head.write(accountId.replaceAll('-', ''), ACCOUNT_ID_AT, 'hex');
  head[LENGTHS_AT] = hostname.length;
  head.writeUInt16BE(target.length, LENGTHS_AT + 1);
  return Buffer.concat([head, hostname, target, rest]);
}

/** The version of a record, of a code or of a host. */
export function versionIn(record: Buffer): bigint {
  return record.readBigUInt64BE(VERSION_AT);
}

/**
 * Deserializes the first `length` bytes of `record` and copies what it returns. Throws a RangeError if they are too
 * short.
 */
export function readCode(record: Buffer, length: number): FoundRoute {
  const targetAt = TEXTS_AT + (record[LENGTHS_AT] ?? 0);
  const restAt = targetAt + record.readUInt16BE(LENGTHS_AT + 1);
  if (restAt > length) throw new RangeError('a record of the route table is too short');
  const answer = (record[ANSWER_AT] ?? 0) as Answer;
  const isRedirect = answer === Answer.REDIRECT;
  const isVersioned = isRedirect && length > restAt;
  const lastAt = isVersioned ? restAt + TARGET_VERSION_BYTES : restAt;
  const last = length > lastAt ? Buffer.from(record.subarray(lastAt, length)) : undefined;
  return {
    version: record.readUIntBE(VERSION_AT + 2, 6),
    answer,
    targetUrl: record.toString('latin1', targetAt, restAt),
    hostname: targetAt === TEXTS_AT ? '' : record.toString('utf8', TEXTS_AT, targetAt),
    codeId: idIn('qr', record, CODE_ID_AT),
    accountId: idIn('acct', record, ACCOUNT_ID_AT),
    landingPage: isRedirect ? undefined : last,
    targetVersion: isVersioned ? record.readUInt32BE(restAt) : 0,
    policy: isRedirect ? last : undefined,
  };
}

/** Converts a route from Postgres into the form that the table returns. */
export function foundRoute(version: bigint, route: CodeRoute): FoundRoute {
  const { answer, targetUrl, hostname, codeId, accountId } = route;
  const isRedirect = answer === Answer.REDIRECT;
  return {
    version: Number(version & 0xffff_ffff_ffffn),
    answer,
    targetUrl,
    hostname,
    codeId,
    accountId,
    landingPage: isRedirect ? undefined : landingPageBytes(route),
    targetVersion: isRedirect ? route.targetVersion : 0,
    policy: isRedirect ? policyBytes(route) : undefined,
  };
}

/** Deserializes the policy of a `FoundRoute`. Throws if it can't be read. */
export function readPolicy(bytes: Buffer): Policy {
  return fromBinary(PolicySchema, bytes);
}

function landingPageBytes({ landingPage }: CodeRoute): Buffer | undefined {
  const bytes = landingPage ? toBinary(LandingPageSchema, landingPage) : NOTHING;
  return bytes.length > 0 ? Buffer.from(bytes) : undefined;
}

/** Undefined without a policy, and for one that changes nothing. */
function policyBytes({ policy }: CodeRoute): Buffer | undefined {
  const bytes = policy ? toBinary(PolicySchema, policy) : NOTHING;
  return bytes.length > 0 ? Buffer.from(bytes) : undefined;
}

/** What follows the target of a redirect. */
function targetBytes(route: CodeRoute): Buffer {
  const policy = policyBytes(route) ?? NOTHING;
  if (route.targetVersion === 0 && policy.length === 0) return NOTHING;
  const version = Buffer.alloc(TARGET_VERSION_BYTES);
  version.writeUInt32BE(route.targetVersion);
  return Buffer.concat([version, policy]);
}

/** A host in the route table: version (8 bytes), and its `HostRoute` message from the topic. */
export function hostRecord(version: bigint, host: HostRoute): Buffer {
  const record = Buffer.alloc(8);
  record.writeBigUInt64BE(version, VERSION_AT);
  return Buffer.concat([record, toBinary(HostRouteSchema, host)]);
}

/** Deserializes the record of a host; undefined if there is none. */
export function readHost(record: Buffer | undefined): HostRoute | undefined {
  if (!record) return undefined;
  return fromBinary(HostRouteSchema, Buffer.from(record.subarray(8, record.length)));
}
