import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { parse } from 'uuid';
import { encodeId, newUuid } from '../../common/contract/ids.ts';
import type { ConsumeOptions, Log, LogRecord, NewRecord } from '../../common/log/log.ts';
import { type Scan, ScanSchema } from '../../proto/gen/signpost/scans/v1/scan_pb.ts';
import { createPollHandler, type PollHandlerOptions } from './recording/poll-handler.ts';

/** User agent of Safari on an iPhone. */
export const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1';

/** A code to scan and its account; UUIDs. */
export interface ScannedCode {
  readonly codeId: string;
  readonly accountId: string;
}

/** A new code in a new account. */
export function newScannedCode(): ScannedCode {
  return { codeId: newUuid(), accountId: newUuid() };
}

type ScanFields = Partial<Omit<Scan, '$typeName' | '$unknown' | 'scannedAt'>> & { at?: number };

/** The record of a scan as a gateway writes it, with the given fields replaced. */
export function scanRecord(
  { codeId, accountId }: ScannedCode,
  { at = Date.now(), ...fields }: ScanFields = {},
): LogRecord {
  const scan = create(ScanSchema, {
    id: parse(newUuid()),
    codeId: encodeId('qr', codeId),
    accountId: encodeId('acct', accountId),
    scannedAt: timestampFromMs(at),
    host: 'signpost.example',
    userAgent: IPHONE,
    visitor: visitor(1),
    country: 'GB',
    ...fields,
  });
  return logRecord(scan.codeId, toBinary(ScanSchema, scan));
}

/** The bytes of a visitor from a number. */
export function visitor(number: number): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(number));
  return bytes;
}

let published = 0n;

/** A record as the log delivers it, with the next offset. */
export function logRecord(key: string, value: Uint8Array | null): LogRecord {
  return { key, value, headers: {}, partition: 0, offset: published++, timestamp: Date.now() };
}

/** The identity of the topic of scans. */
export const TOPIC_ID = 'the only topic';

/** A poll handler for polls of one topic that begin with their first record, unless a test says otherwise. */
export function pollHandler(options: PollHandlerOptions) {
  const handle = createPollHandler(options);
  return (records: readonly LogRecord[], from = records[0]?.offset ?? 0n, topicId = TOPIC_ID): Promise<void> =>
    handle(records, from, topicId);
}

/** A log that stores published records and delivers nothing: tests call the poll handler themselves. */
export function inMemoryLog(): Log & { readonly published: { topic: string; records: readonly NewRecord[] }[] } {
  const published: { topic: string; records: readonly NewRecord[] }[] = [];
  const subscription = { stop: async () => undefined };
  const publish: Log['publish'] = async (topic, records) => void published.push({ topic, records });
  return {
    published,
    publish,
    openFencedPublisher: async () => ({ publish, close: async () => undefined }),
    consume: (_: ConsumeOptions) => subscription,
    follow: () => subscription,
    ends: async () => new Map(),
    since: async () => new Map(),
    identity: async () => TOPIC_ID,
    ensureTopics: async () => undefined,
    check: async () => undefined,
    close: async () => undefined,
  };
}
