import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { parse } from 'uuid';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import type { ConsumeOptions, Log, LogRecord, NewRecord } from '../../common/log/log.ts';
import { type Scan, ScanSchema } from '../../proto/gen/signpost/scans/v1/scan_pb.ts';

/** An iPhone's browser. */
export const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1';

/** A code that can be scanned, with its account; UUIDs. */
export interface Scanned {
  readonly codeId: string;
  readonly accountId: string;
}

/** A code of an account of its own. */
export function newScanned(): Scanned {
  return { codeId: newUuid(), accountId: newUuid() };
}

type Told = Partial<Omit<Scan, '$typeName' | '$unknown' | 'scannedAt'>> & { at?: number };

/** The record of a scan as a gateway writes it; what is given replaces what it holds. */
export function scanRecord({ codeId, accountId }: Scanned, { at = Date.now(), ...told }: Told = {}): LogRecord {
  const scan = create(ScanSchema, {
    id: parse(newUuid()),
    codeId: encodeId('qr', codeId),
    accountId: encodeId('acct', accountId),
    scannedAt: timestampFromMs(at),
    host: 'signpost.example',
    userAgent: IPHONE,
    visitor: visitor(1),
    country: 'GB',
    ...told,
  });
  return logRecord(scan.codeId, toBinary(ScanSchema, scan));
}

/** The same as a former gateway wrote it, with what the recorder has to derive from. */
export function formerRecord(scanned: Scanned, told: Told = {}): LogRecord {
  return scanRecord(scanned, { visitor: new Uint8Array(), country: '', address: '81.2.69.142', ...told });
}

/** A visitor, by number. */
export function visitor(number: number): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(number));
  return bytes;
}

let published = 0n;

/** A record as the log hands it out, published after those before it. */
export function logRecord(key: string, value: Uint8Array | null): LogRecord {
  return { key, value, headers: {}, partition: 0, offset: published++, timestamp: Date.now() };
}

/** A log that keeps what is published and consumes nothing: for what the recorder does with a poll in hand. */
export function keepingLog(): Log & { readonly published: { topic: string; records: readonly NewRecord[] }[] } {
  const published: { topic: string; records: readonly NewRecord[] }[] = [];
  const nothing = { stop: async () => undefined };
  const publish: Log['publish'] = async (topic, records) => void published.push({ topic, records });
  return {
    published,
    publish,
    openFencedPublisher: async () => ({ publish, close: async () => undefined }),
    consume: (_: ConsumeOptions) => nothing,
    follow: () => nothing,
    ends: async () => new Map(),
    since: async () => new Map(),
    identity: async () => 'the only one',
    ensureTopics: async () => undefined,
    check: async () => undefined,
    close: async () => undefined,
  };
}
