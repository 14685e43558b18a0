import { decodeId, type IdPrefix } from '../../../common/contract/ids.ts';
import type { LogRecord } from '../../../common/log/log.ts';
import { readFields, type ScanFields } from './scan-fields.ts';

/** A scan as the gateway told it, its ids as Postgres has them. */
export interface ToldScan {
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
  /** 64 bits; undefined when the record has none, or none can be derived from its address any more. */
  readonly visitor: bigint | undefined;
  /** Empty when unknown. */
  readonly country: string;
  /** Empty when there was no referrer. */
  readonly referrerHost: string;
  /** What a former gateway told of the reader; undefined in all other records. */
  readonly former: Pick<ScanFields, 'address' | 'referrer' | 'countryHint'> | undefined;
  /** Of its record in the log. */
  readonly offset: bigint;
}

/** What can't be recorded, and why: a sentence for whoever reads the dead letters. */
export interface Unreadable {
  readonly unreadable: string;
}

/** Signpost is younger than this: an earlier time is a gateway without a clock. */
const EARLIEST = Date.UTC(2020, 0, 1);

/** How far a gateway's clock may be ahead, in ms. */
const AHEAD_MS = 86_400_000;

/** Reads a record of `signpost.scans.v1`. `now` is in ms since 1970. */
export function readScan({ value, offset }: LogRecord, now: number): ToldScan | Unreadable {
  if (value === null) return { unreadable: 'The record has no value.' };
  const scan = readFields(value);
  if (!scan)
    return { unreadable: 'The value is no signpost.scans.v1.Scan; it is left out, as it may hold an address.' };
  if (scan.id.length !== 16) return { unreadable: 'The id is not 16 bytes long.' };
  const codeId = decoded('qr', scan.codeId);
  if (codeId === undefined) return { unreadable: 'The code_id is no id of a code.' };
  const accountId = decoded('acct', scan.accountId);
  if (accountId === undefined) return { unreadable: 'The account_id is no id of an account.' };
  const { scannedAt, userAgent, purpose, country, referrerHost } = scan;
  if (Number.isNaN(scannedAt)) return { unreadable: 'The scan has no scanned_at.' };
  if (!(scannedAt >= EARLIEST && scannedAt <= now + AHEAD_MS)) {
    return { unreadable: 'The scanned_at is before 2020 or more than a day ahead.' };
  }
  if (scan.visitor.length !== 0 && scan.visitor.length !== 8) return { unreadable: 'The visitor is not 8 bytes long.' };
  const id = uuidOf(scan.id);
  const [visitor, former] = scan.visitor.length === 8 ? [bigintOf(scan.visitor), undefined] : [undefined, scan];
  return { id, codeId, accountId, scannedAt, userAgent, purpose, visitor, country, referrerHost, former, offset };
}

/** The 8 bytes of a visitor, as Postgres has them. */
export function bigintOf(bytes: Uint8Array): bigint {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).readBigInt64BE();
}

function uuidOf(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** Decoding an id is arithmetic on big integers, and a poll has far fewer codes than scans. */
const REMEMBERED = 20_000;
const remembered = new Map<string, string>();

function decoded(prefix: IdPrefix, id: string): string | undefined {
  const known = id.startsWith(prefix) ? remembered.get(id) : undefined;
  if (known !== undefined) return known;
  const uuid = decodeId(prefix, id);
  if (uuid === undefined) return undefined;
  if (remembered.size >= REMEMBERED) remembered.clear();
  remembered.set(id, uuid);
  return uuid;
}
