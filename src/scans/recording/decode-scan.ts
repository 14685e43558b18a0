import { decodeId, type IdPrefix } from '../../../common/contract/ids.ts';
import type { LogRecord } from '../../../common/log/log.ts';
import { DAY_MS } from '../../../common/runtime/durations.ts';
import { decodeFields, type ScanFields } from './scan-fields.ts';

/** The target that answered a scan, and what decided it. */
export interface ScanTarget {
  /** The version of the code's target, from 1 on. */
  readonly version: number;
  /** Counted from 1; 0 if no rule decided. */
  readonly rule: number;
  /** The label of the split's variant; empty if the rule has no split. Any printable characters. */
  readonly variant: string;
}

/** A scan as the gateway published it, with its ids as UUIDs. */
export interface DecodedScan {
  /** UUID. */
  readonly id: string;
  /** UUID. */
  readonly codeId: string;
  /** UUID. */
  readonly accountId: string;
  /** ms since 1970. */
  readonly scannedAt: number;
  readonly userAgent: string;
  readonly purpose: string;
  /** 64 bits; undefined when the record has none. */
  readonly visitor: bigint | undefined;
  /** Empty when unknown. */
  readonly country: string;
  /** Empty when there was no referrer. */
  readonly referrerHost: string;
  /** Undefined if the code's target had never been changed. */
  readonly target: ScanTarget | undefined;
  /** Offset of its record in the log. */
  readonly offset: bigint;
}

/** Why a record cannot be decoded: a sentence for readers of the dead letters. */
export interface Undecodable {
  readonly undecodable: string;
}

/** Signpost is younger than this: an earlier time comes from a gateway whose clock is wrong. */
const EARLIEST = Date.UTC(2020, 0, 1);

/** How far a gateway's clock may be ahead, in ms. */
const AHEAD_MS = DAY_MS;

/** The largest values of Postgres's `integer` and `smallint`. */
const [MAX_VERSION, MAX_RULE] = [0x7fff_ffff, 0x7fff];

/** The labels that a policy may contain: Postgres rejects NUL, and archives have a scan in each line. */
const LABEL = /^\P{Cc}{0,32}$/u;

/** Decodes a record of `signpost.scans.v1`. `now` is in ms since 1970. */
export function decodeScan({ value, offset }: LogRecord, now: number): DecodedScan | Undecodable {
  if (value === null) return { undecodable: 'The record has no value.' };
  const scan = decodeFields(value);
  if (!scan)
    return {
      undecodable: 'The value is not a signpost.scans.v1.Scan; it is left out because it may contain an address.',
    };
  if (scan.id.length !== 16) return { undecodable: 'The id is not 16 bytes long.' };
  const codeId = decodeCached('qr', scan.codeId);
  if (codeId === undefined) return { undecodable: 'The code_id is not the id of a code.' };
  const accountId = decodeCached('acct', scan.accountId);
  if (accountId === undefined) return { undecodable: 'The account_id is not the id of an account.' };
  const { scannedAt, userAgent, purpose, country, referrerHost } = scan;
  if (Number.isNaN(scannedAt)) return { undecodable: 'The scan has no scanned_at.' };
  if (!(scannedAt >= EARLIEST && scannedAt <= now + AHEAD_MS)) {
    return { undecodable: 'The scanned_at is before 2020 or more than a day ahead.' };
  }
  if (scan.visitor.length !== 0 && scan.visitor.length !== 8)
    return { undecodable: 'The visitor is not 8 bytes long.' };
  const target = targetOf(scan);
  if (target === null) return { undecodable: 'The target of the scan is out of range.' };
  return {
    id: uuidOf(scan.id),
    codeId,
    accountId,
    scannedAt,
    userAgent,
    purpose,
    visitor: scan.visitor.length === 0 ? undefined : bigintOf(scan.visitor),
    country,
    referrerHost,
    target,
    offset,
  };
}

/** Undefined without a version, null for a target that cannot be stored. */
function targetOf({ targetVersion, targetRule, targetVariant }: ScanFields): ScanTarget | undefined | null {
  if (targetVersion === 0) return undefined;
  if (targetVersion > MAX_VERSION || targetRule > MAX_RULE || !LABEL.test(targetVariant)) return null;
  return { version: targetVersion, rule: targetRule, variant: targetVariant };
}

/** The 8 bytes of a visitor as Postgres's `bigint`. */
function bigintOf(bytes: Uint8Array): bigint {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).readBigInt64BE();
}

function uuidOf(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** Decoding an id is big-integer arithmetic, and a poll has far fewer codes than scans. */
const MAX_CACHED = 20_000;
const cache = new Map<string, string>();

function decodeCached(prefix: IdPrefix, id: string): string | undefined {
  const cached = id.startsWith(prefix) ? cache.get(id) : undefined;
  if (cached !== undefined) return cached;
  const uuid = decodeId(prefix, id);
  if (uuid === undefined) return undefined;
  if (cache.size >= MAX_CACHED) cache.clear();
  cache.set(id, uuid);
  return uuid;
}
