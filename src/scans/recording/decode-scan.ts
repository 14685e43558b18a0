import { decodeId, type IdPrefix } from '../../../common/contract/ids.ts';
import type { LogRecord } from '../../../common/log/log.ts';
import { decodeFields, type ScanFields } from './scan-fields.ts';

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
  /** 64 bits; undefined when the record has none and none can be derived from its address any more. */
  readonly visitor: bigint | undefined;
  /** Empty when unknown. */
  readonly country: string;
  /** Empty when there was no referrer. */
  readonly referrerHost: string;
  /** What an older gateway sent about the visitor; undefined in all other records. */
  readonly legacy: Pick<ScanFields, 'address' | 'referrer' | 'countryHint'> | undefined;
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
const AHEAD_MS = 86_400_000;

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
  const id = uuidOf(scan.id);
  const [visitor, legacy] = scan.visitor.length === 8 ? [bigintOf(scan.visitor), undefined] : [undefined, scan];
  return { id, codeId, accountId, scannedAt, userAgent, purpose, visitor, country, referrerHost, legacy, offset };
}

/** The 8 bytes of a visitor as Postgres's `bigint`. */
export function bigintOf(bytes: Uint8Array): bigint {
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
